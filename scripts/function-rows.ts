import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Capability, capabilitiesOf } from '@platform/contract/endpoint'
import { routes } from '@platform/contract/index'
import { modulePaths } from '@platform/contract/passage'
import { type Task, tasks } from '@platform/contract/task'
import { functionNames } from '@platform/core/updates/function-names'
import { coldColumns, coldTitle } from '../bench/cold/table.ts'
import { type Bundle, bundleAll } from './bundle.ts'
import { root } from './source.ts'

/** The page that holds the table of all functions, and where in it. */
export const pagePath = 'docs/functions.md'
export const begin = '<!-- functions: npm run functions:table -->'
export const end = '<!-- end of functions -->'
export const columns = ['function', 'KiB', 'late', '× bare', 'may use']

/** A line of it. */
export interface FunctionRow {
  name: string
  /** What it loads before it can answer, and what it loads when something needs it. */
  initialKib: number
  lateKib: number
  /** CPU time to its first answer, as a multiple of what a bare handler takes; undefined where it was not measured. */
  ratio: number | undefined
  grants: string
}

/** What a function needs of the platform: the grants of its role. */
function usesOfFunction(name: string): Capability[] {
  const own = routes.filter((route) => route.function === name).flatMap(({ endpoint }) => capabilitiesOf(endpoint))
  const { [name]: task }: Record<string, Pick<Task, 'uses'>> = { ...tasks, [modulePaths.function]: modulePaths }
  return [...new Set([...own, ...(task?.uses ?? [])])]
}

/** `table read, write; queue events` */
function grantsOf(uses: readonly Capability[]): string {
  const kinds = Map.groupBy(uses, (use) => use.split(':')[0])
  return [...kinds].map(([kind, each]) => `${kind} ${each.map((use) => use.split(':')[1]).join(', ')}`).join('; ')
}

const kib = (files: Iterable<Uint8Array>): number => [...files].reduce((sum, { length }) => sum + length, 0) / 1024

/** Sizes of a bundle, in kibibytes. */
function sizesOf({ files, initial }: Bundle) {
  const initialKib = kib(initial.map((file) => files.get(file) ?? new Uint8Array()))
  return { initialKib, lateKib: kib(files.values()) - initialKib }
}

/** The last measurement: when, and function → ratio. */
export async function measuredRatios(): Promise<{ day: string; ratios: Map<string, number> }> {
  const text = await readFile(join(root, 'bench/results.json'), 'utf8')
  const { measuredAt, sections }: { measuredAt: string; sections: MeasuredSection[] } = JSON.parse(text)
  const section = sections.find(({ title }) => title === coldTitle)
  const at = coldColumns.indexOf('CPU ratio')
  const rows = section?.rows.map((row) => [String(row[0]), Number(row[at])] as const) ?? []
  return { day: (section?.measured ?? measuredAt).slice(0, 10), ratios: new Map(rows) }
}

interface MeasuredSection {
  title: string
  rows: (string | number)[][]
  measured?: string
}

/** Every function, as it is: of bundles, which are made where there are none. */
export async function functionRows(made?: ReadonlyMap<string, Bundle>): Promise<FunctionRow[]> {
  const [bundles, { ratios }] = await Promise.all([made ?? bundleAll(functionNames, undefined), measuredRatios()])
  return [...bundles].map(([name, bundle]) => {
    const { initialKib, lateKib } = sizesOf(bundle)
    return { name, initialKib, lateKib, ratio: ratios.get(name), grants: grantsOf(usesOfFunction(name)) }
  })
}

const cellsOf = ({ name, initialKib, lateKib, ratio, grants }: FunctionRow): string[] => [
  `\`${name}\``,
  String(Math.round(initialKib)),
  lateKib < 0.5 ? '' : String(Math.round(lateKib)),
  ratio?.toFixed(2) ?? '',
  grants,
]

/** The table as the page has it, with when its ratios were measured. */
export function tableOf(rows: readonly FunctionRow[], day: string): string {
  const lines = [columns, columns.map(() => '---'), ...rows.map(cellsOf)].map((cells) => `| ${cells.join(' | ')} |`)
  return `<!-- oxfmt-ignore -->\n${lines.join('\n')}\n\nThe ratios were measured on ${day}.`
}
