import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { root } from '../../scripts/source.ts'
import type { PlatformProcess } from '../support/platform.ts'

/** What came of the journeys of the conformance suite. */
export interface Journeys {
  passed: number
  total: number
  /** All that the run has printed. */
  text: string
}

/** How the journeys are run. */
interface Run {
  /** The areas; all of them, if absent. */
  only?: readonly string[]
  /** Where the platform answers, if not at its own address. */
  baseUrl?: string
  /** What the run's environment has beside this one's. */
  environment?: Readonly<Record<string, string>>
  say: (line: string) => void
}

/** A number in the summary that vitest writes last. */
const countOf = (text: string, pattern: RegExp): number =>
  Number(pattern.exec(/^ *Tests .*$/m.exec(text)?.[0] ?? '')?.[1] ?? 0)

/** Runs the conformance suite as whoever types the command does, and tells of each area and of each failure. */
export async function runJourneys(
  { url, dataDir }: PlatformProcess,
  { only, baseUrl = url, environment, say }: Run,
): Promise<Journeys> {
  const args = [
    'test/conformance/main.ts',
    '--base-url',
    baseUrl,
    ...(only === undefined ? [] : ['--only', only.join()]),
  ]
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1', PLAT_DATA_DIR: dataDir, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  let text = ''
  for await (const line of createInterface(child.stdout)) {
    text += `${line}\n`
    if (/^ *[✓❯×]/.test(line)) say(line)
  }
  await closed
  const [passed, total] = [countOf(text, /(\d+) passed/), countOf(text, /\((\d+)\)/)]
  if (passed < total) say(text.slice(text.indexOf('Failed Tests')))
  return { passed, total, text }
}
