import { setTimeout as delay } from 'node:timers/promises'
import { removeLeftovers } from '../leftovers.ts'
import { claimFolder, findRehearsal, readState, type State } from '../state.ts'

/** Longer than a rehearsal takes that ends by itself. */
const patienceMs = 30_000
const pollMs = 50

/** What there was to end: a rehearsal that ran, what one has left that was killed, or nothing. */
export type Stopped = { ran: State } | { left: State } | undefined

/** Ends the rehearsal of a folder, with all its processes. Resolves when nothing of it is left but its log. */
export async function stop(folder: string): Promise<Stopped> {
  const left = readState(folder)
  const running = findRehearsal(folder)
  if (running !== undefined) await end(folder, running)
  if (left === undefined) return undefined
  using claim = claimFolder(folder)
  if (claim !== undefined) removeLeftovers(folder)
  return running === undefined ? { left } : { ran: running }
}

async function end(folder: string, { pid, stamp }: State): Promise<void> {
  const isThere = () => findRehearsal(folder)?.stamp === stamp
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (isThere()) process.kill(pid, signal)
    const deadlineMs = performance.now() + patienceMs
    while (isThere() && performance.now() < deadlineMs) await delay(pollMs)
  }
}
