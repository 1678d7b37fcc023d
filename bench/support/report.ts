import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import type { Goal, Section } from './section.ts'
import { goalRows } from './yardsticks.ts'

const folder = new URL('../', import.meta.url)

/** A number as people read it: whole from a hundred on, else three digits that count. */
const shown = (cell: string | number): string => {
  if (typeof cell === 'string') return cell
  if (Number.isInteger(cell) || Math.abs(cell) >= 100) return String(Math.round(cell))
  return String(Number(cell.toPrecision(3)))
}

const aligned = (rows: string[][], widths: number[]): string[] =>
  rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )

/** A section as it is printed while the bench runs. */
export function printed({ title, columns, rows, goals }: Section): string {
  const table = [columns, ...rows.map((row) => row.map(shown))]
  const widths = columns.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  return [`\n${title}`, ...aligned(table, widths), ...goals.filter(({ isMet }) => !isMet).map(complaint)].join('\n')
}

/** One missed goal in words. */
export const complaint = (goal: Goal): string =>
  `${'isHope' in goal ? 'not as hoped' : 'MISSED'}: ${goal.name}: ${shown(goal.measured)}, at most ${shown(goal.limit)}`

const markdownRow = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`

function markdownOf({ title, notes, columns, rows, goals, measured }: Section): string {
  const table = [
    columns,
    columns.map((_, column) => (column === 0 ? '---' : '--:')),
    ...rows.map((row) => row.map(shown)),
  ]
  const met = goals.filter(({ isMet }) => isMet).length
  const missed = goals.filter(({ isMet }) => !isMet).map((goal) => `- ${complaint(goal)}`)
  const verdict = goals.length === 0 ? [] : [`Goals: ${met} of ${goals.length} met.`, ...missed]
  const apart = measured === undefined ? [] : ['', `Measured by itself: ${measured}.`]
  return [`## ${title}`, '', ...notes, ...apart, '', ...table.map(markdownRow), '', ...verdict].join('\n')
}

/** Where the platform stands: what was aimed at, and how far from it what was measured last is. */
function goalsTable(goals: Section['goals']): string {
  const columns = ['#', 'goal', 'what is nearest to its limit, or farthest beyond', 'is', 'if not met, why']
  const table = [columns, columns.map(() => '---'), ...goalRows(goals)]
  const note =
    'Set before anything was built; G22 and G23 are of the goals of security. A figure is what was measured of what it may be at most; where a goal is made of several, how many are met goes before it. What a section says of its own goals follows below.'
  return ['## The goals', '', note, '', ...table.map(markdownRow)].join('\n')
}

const preface = `# Measurements

Written by \`npm run bench\`; do not edit. \`npm run bench -- --quick\` is the short version, which writes nothing;
\`npm run bench -- --only NAME\` measures that part again and keeps the rest (\`--help\` lists them). The bench measures the platform against a floor, and against
peers, in the same run and on the same stand-ins: read the ratios and the counts; times depend on the machine. It fails
when a count or a ratio exceeds its goal. What depends on the machine, and what was set too low (see the table), is only
hoped for. The stand-ins count capacity as DynamoDB bills it, but do not throttle and have no network to cross.`

interface Results {
  measuredAt: string
  machine: string
  sections: readonly Section[]
}

const machine = (): string =>
  `${process.version}, ${process.platform} ${process.arch}, ${cpus().length} × ${cpus()[0]?.model.trim()}`

/** Keeps the results: as JSON for programs, as Markdown for people. */
export const keep = (sections: readonly Section[]): Promise<void> =>
  write({ measuredAt: new Date().toISOString(), machine: machine(), sections })

/** Keeps the results of some sections, and those of all others as they were. */
export async function keepSome(some: readonly Section[]): Promise<void> {
  const before: Results = JSON.parse(await readFile(new URL('results.json', folder), 'utf8'))
  const measured = `${new Date().toISOString().slice(0, 10)} on ${machine()}`
  const fresh = new Map(some.map((section) => [section.title, { ...section, measured }]))
  const known = new Set(before.sections.map(({ title }) => title))
  const replaced = before.sections.map((section) => fresh.get(section.title) ?? section)
  await write({ ...before, sections: [...replaced, ...[...fresh.values()].filter(({ title }) => !known.has(title))] })
}

async function write(results: Results): Promise<void> {
  const header = `${preface}\n\nMeasured ${results.measuredAt.slice(0, 10)} on ${results.machine}.`
  const goals = goalsTable(results.sections.flatMap((section) => section.goals))
  const markdown = [header, goals, ...results.sections.map(markdownOf)].join('\n\n').trimEnd()
  await writeFile(new URL('results.json', folder), `${JSON.stringify(results, null, 2)}\n`)
  await writeFile(new URL('README.md', folder), `${markdown}\n`)
}
