/** `npm run bench:table`: writes the table of the platform beside its peers into README.md, from what was measured last. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { benchBegin, benchEnd, benchTable, measuredOn, readResults } from './bench-rows.ts'
import { root } from './source.ts'

const file = join(root, 'README.md')
const text = await readFile(file, 'utf8')
const [before = '', rest = ''] = text.split(benchBegin)
const [, after] = rest.split(benchEnd)
if (after === undefined) throw new Error(`README.md has no place for the table: ${benchBegin} … ${benchEnd}`)
const results = await readResults()
const table = `<!-- oxfmt-ignore -->\n${benchTable(results)}\n\nMeasured on ${measuredOn(results)}.`
await writeFile(file, `${before}${benchBegin}\n\n${table}\n\n${benchEnd}${after}`)
