/** `npm run functions:table`: writes the table of all functions into docs/functions.md: sizes, first answers, grants. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { begin, end, functionRows, measuredRatios, pagePath, tableOf } from './function-rows.ts'
import { root } from './source.ts'

const file = join(root, pagePath)
const text = await readFile(file, 'utf8')
const [before = '', rest = ''] = text.split(begin)
const [, after] = rest.split(end)
if (after === undefined) throw new Error(`${pagePath} has no place for the table: ${begin} … ${end}`)
const { day } = await measuredRatios()
const table = tableOf(await functionRows(), day)
await writeFile(file, `${before}${begin}\n\n${table}\n\n${end}${after}`)
