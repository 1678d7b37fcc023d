import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { coldColumns, coldTitle } from '../bench/cold/table.ts'
import { throughputColumns, throughputTitle } from '../bench/one-machine/throughput-table.ts'
import { peersColumns, peersTitle, shareTitle } from '../bench/operations/peers-table.ts'
import { root } from './source.ts'

/** The table in README.md of the platform beside its peers. */

export const benchBegin = '<!-- bench: npm run bench:table -->'
export const benchEnd = '<!-- end of bench -->'

/** What bench/results.json holds, as far as it is needed here. */
interface Results {
  measuredAt: string
  sections: { title: string; rows: (string | number)[][]; measured?: string }[]
}

type Cells = readonly (string | number)[]

const sides = ['floor', 'platform', 'fastify', 'express', 'nest'] as const
const programs: Record<string, string> = {
  floor: 'floor: get-cluster + sqs',
  platform: 'clusters',
  fastify: 'peer: fastify',
  express: 'peer: express',
  nest: 'peer: nest',
}
const names: Record<string, string> = {
  floor: 'bare handler',
  platform: '**the platform**',
  fastify: 'Fastify 5',
  express: 'Express 5',
  nest: 'NestJS 12',
}

/** The last measurement, whole or in parts. */
export const readResults = async (): Promise<Results> =>
  JSON.parse(await readFile(join(root, 'bench/results.json'), 'utf8'))

/** The table as README.md has it. Throws where something was never measured. */
export function benchTable(results: Results): string {
  const of = (title: string, columns: readonly string[], keys: readonly string[], column: string): string => {
    const row = sectionOf(results, title).rows.find((cells) => keys.every((key, at) => cells[at] === key))
    const cell = row?.[columns.indexOf(column)]
    if (typeof cell !== 'number') throw new Error(`${title} says nothing of ${keys.join(', ')}.`)
    return `${cell.toFixed(2)} ×`
  }
  const cpu = (title: string, operation: string, side: string) => of(title, peersColumns, [operation, side], '× floor')
  const rows = sides.map((side) => [
    names[side] ?? side,
    cpu(peersTitle, 'GET /clusters/{id}', side),
    cpu(peersTitle, 'GET /clusters/{id}, a fresh token each', side),
    cpu(peersTitle, 'POST /jobs', side),
    cpu(shareTitle, 'GET /clusters/{id}', side),
    of(coldTitle, coldColumns, [programs[side] ?? side], 'CPU ratio'),
    of(coldTitle, coldColumns, [programs[side] ?? side], 'MB ratio'),
    of(throughputTitle, throughputColumns, [side], 'ratio, median'),
  ])
  return [columns, columns.map((_, at) => (at === 0 ? '---' : '--:')), ...rows].map(line).join('\n')
}

const columns = [
  '',
  'GET, CPU',
  'a fresh token each',
  'POST, CPU',
  'GET without the store',
  'first answer',
  'memory',
  'requests/s',
]

const line = (cells: Cells): string => `| ${cells.join(' | ')} |`

function sectionOf({ sections }: Results, title: string) {
  const section = sections.find((each) => each.title === title)
  if (section === undefined) throw new Error(`“${title}” was never measured: npm run bench.`)
  return section
}

/** When the parts of the table were measured, first and last. */
export function measuredOn(results: Results): string {
  const days = [peersTitle, shareTitle, coldTitle, throughputTitle]
    .map((title) => (sectionOf(results, title).measured ?? results.measuredAt).slice(0, 10))
    .toSorted()
  const [first = '', last = ''] = [days[0], days.at(-1)]
  return first === last ? first : `${first} to ${last}`
}
