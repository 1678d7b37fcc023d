import { setTimeout as delay } from 'node:timers/promises'
import { removeLeftovers } from '../leftovers.ts'
import { claimFolder, findSimulator, readState, type State } from '../state.ts'

/** Longer than a simulator takes to stop. */
const patienceMs = 30_000
const pollMs = 50

/** What was stopped: a running simulator, the leftovers of a killed one, or nothing. */
export type Stopped = { ran: State } | { left: State } | undefined

/** Stops the simulator of a folder with all its processes and removes everything but the log. */
export async function stop(folder: string): Promise<Stopped> {
  const left = readState(folder)
  const running = findSimulator(folder)
  if (running !== undefined) await end(folder, running)
  if (left === undefined) return undefined
  using claim = claimFolder(folder)
  if (claim !== undefined) removeLeftovers(folder)
  return running === undefined ? { left } : { ran: running }
}

async function end(folder: string, { pid, stamp }: State): Promise<void> {
  const isThere = () => findSimulator(folder)?.stamp === stamp
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (isThere()) process.kill(pid, signal)
    const deadlineMs = performance.now() + patienceMs
    while (isThere() && performance.now() < deadlineMs) await delay(pollMs)
  }
}
