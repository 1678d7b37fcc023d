import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import type { Shown } from './child.ts'
import type { Figure } from './part.ts'
import { partNames } from './parts.ts'

/** What one run of a part has shown, and of what. */
export interface Kept extends Shown {
  /** ISO 8601, when it began. */
  at: string
  seconds: number
  /** The commit that was checked out, and whether files differed from it. */
  commit: string
  seed: number
}

/** The last whole run of each part. */
export type Records = Readonly<Record<string, Kept>>

const kept = new URL('results.json', import.meta.url)
const report = new URL('../docs/proof.md', import.meta.url)

async function readRecords(): Promise<Records> {
  const records: Records = JSON.parse(await readFile(kept, 'utf8').catch(() => '{}'))
  return records
}

/** Keeps what a part has shown last, and writes the report anew. */
export async function keep(name: string, record: Kept): Promise<void> {
  const records = { ...(await readRecords()), [name]: record }
  await writeFile(kept, `${JSON.stringify(records, null, 2)}\n`)
  await writeFile(report, markdownOf(records))
}

const row = ({ claim, goal, seen, isMet }: Figure): string =>
  `| ${[claim, goal, seen, isMet ? 'yes' : '**no**'].map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`

const sectionOf = (name: string, { title, how, figures, at, seconds, commit, seed }: Kept): string =>
  [
    `## ${title}`,
    '',
    how,
    '',
    '| what | goal | seen | met |',
    '| --- | --- | --- | --- |',
    ...figures.map(row),
    '',
    `\`npm run proof -- --only ${name}\`: ${at.slice(0, 10)}, commit ${commit}, ${seconds} s, seed ${seed}.`,
  ].join('\n')

const preface = `# Proof

Written by \`npm run proof\`; do not edit. What is promised, what has to be seen for it, and what was seen when it was last run. Every part
runs in a process of its own, against stand-ins that answer as badly as the real services may. \`npm test\` has a short version of each; of those that are whole files of tests, what it runs of these files.
What cannot be shown on one machine stands in [the security model](security.md).`

/** The report of all parts that were run, in the order of the list. */
function markdownOf(records: Records): string {
  const sections = partNames.flatMap((name) => {
    const record = records[name]
    return record === undefined ? [] : [sectionOf(name, record)]
  })
  const machine = `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${cpus().length} cores.`
  return `${[preface, machine, ...sections].join('\n\n')}\n`
}
