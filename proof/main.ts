/** `npm run proof`: shows what the platform survives, part by part; fails where a figure misses its goal. */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { root } from '../scripts/source.ts'
import { missesOf, runPart } from './child.ts'
import { partNames } from './parts.ts'
import type { Figure } from './part.ts'
import { keep } from './report.ts'

const help = `npm run proof                        every part, and docs/proof.md anew: four hours and more
npm run proof -- --only NAME,NAME    these parts; the report keeps the others
npm run proof -- --short             the short version of each, which writes nothing
npm run proof -- --seed NUMBER       with the random choices of a former run, but for pauses

parts: ${partNames.join(', ')}
`

const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()

/** What is tested: the commit, and a word where files differ from it that are not the report itself. */
function commit(): string {
  const changed = git('status', '--porcelain', '--', '.', ':!docs/proof.md', ':!proof/results.json')
  return `${git('rev-parse', '--short=10', 'HEAD')}${changed === '' ? '' : ' with changes'}`
}

/** What stands in the report in place of the figures of a part that has none: those of a former run would say that all is well. */
const broken = ({ message }: Error): Figure => ({
  claim: 'the part comes to its figures',
  goal: 'yes',
  seen: message,
  isMet: false,
})

/** Runs one part, prints its figures, keeps those of a whole run; answers what it misses. */
async function prove(name: string, effort: 'short' | 'whole', seed: number): Promise<string[]> {
  console.log(`\n== ${name}`)
  const [startedAtMs, at] = [performance.now(), new Date().toISOString()]
  const tested = commit()
  const shown = await runPart(name, effort, seed).catch((error: Error) => ({
    title: name,
    how: 'The part has broken off.',
    figures: [broken(error)],
  }))
  const seconds = Math.round((performance.now() - startedAtMs) / 1000)
  for (const { claim, goal, seen, isMet } of shown.figures) {
    console.log(`${isMet ? 'ok    ' : 'MISSED'} ${claim}: ${seen} (goal ${goal})`)
  }
  if (effort === 'whole') await keep(name, { ...shown, at, seconds, commit: tested, seed })
  return missesOf(shown)
}

async function main(): Promise<void> {
  const number = { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) } as const
  const options = {
    only: { type: 'string' },
    short: { type: 'boolean' },
    help: { type: 'boolean' },
    seed: number,
  } as const
  const { values } = parseArgs({ options })
  const names = values.only?.split(',') ?? partNames
  const unknown = names.filter((name) => !partNames.includes(name))
  if (values.help || unknown.length > 0) {
    process.stdout.write(`${unknown.map((name) => `There is no part ${name}.\n`).join('')}${help}`)
    process.exitCode = values.help ? 0 : 2
    return
  }
  const failed: string[] = []
  for (const name of names) {
    const misses = await prove(name, values.short ? 'short' : 'whole', Number(values.seed))
    failed.push(...misses.map((miss: string) => `${name}: ${miss}`))
  }
  console.log(failed.length === 0 ? '\nAll is as it has to be.' : `\n${failed.length} figures miss their goals:`)
  for (const line of failed) console.log(line)
  process.exitCode = failed.length === 0 ? 0 : 1
}

await main()
