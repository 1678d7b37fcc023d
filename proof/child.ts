import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Figure } from './part.ts'

/** What a part has shown. */
export interface Shown {
  title: string
  how: string
  figures: readonly Figure[]
}

const program = new URL('run-part.ts', import.meta.url)

/** Where `npm test` runs a part, its process is nevertheless no test. */
const env = Object.fromEntries(Object.entries(process.env).filter(([variable]) => !variable.startsWith('VITEST')))

/** How much of what a process has complained of last is told with its end, in characters. */
const toldLength = 4000

/**
 * Runs a part in a process of its own, which prints how far it is. Throws where the part does not come to its figures,
 * with what it wrote last to its standard error.
 */
export async function runPart(name: string, effort: 'short' | 'whole', seed: number): Promise<Shown> {
  const child = fork(program, [name, effort, String(seed)], {
    execArgv: [],
    env,
    stdio: ['inherit', 'inherit', 'pipe', 'ipc'],
  })
  let complaint = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    process.stderr.write(text)
    complaint = (complaint + text).slice(-toldLength)
  })
  const shown: Shown[] = []
  child.on('message', (message: any) => shown.push(message))
  const [exitCode, signal] = await once(child, 'close')
  const [first] = shown
  if (first === undefined || exitCode !== 0) {
    throw new Error(`The part ${name} ended with ${signal ?? `exit code ${exitCode}`}.\n${complaint}`)
  }
  return first
}

/** The figures of a part that are not as they have to be, in words. */
export const missesOf = ({ figures }: Shown): string[] =>
  figures.filter(({ isMet }) => !isMet).map(({ claim, goal, seen }) => `${claim}: ${seen}, has to be ${goal}`)
