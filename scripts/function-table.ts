/** `npm run functions:table`: writes the table of all functions into README.md: sizes, first answers, grants. */
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { begin, end, functionRows, measuredRatios, tableOf } from './function-rows.ts'
import { root } from './source.ts'

const file = join(root, 'README.md')
const text = await readFile(file, 'utf8')
const [before = '', rest = ''] = text.split(begin)
const [, after] = rest.split(end)
if (after === undefined) throw new Error(`README.md has no place for the table: ${begin} … ${end}`)
const { day } = await measuredRatios()
const table = tableOf(await functionRows(), day)
await writeFile(file, `${before}${begin}\n\n${table}\n\n${end}${after}`)
execFileSync(join(root, 'node_modules/.bin/oxfmt'), ['README.md'], { cwd: root, stdio: 'inherit' })
