import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { sep } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { claimFolder, findSimulator, placesIn, readState, type State } from '../state.ts'

const stopTimeoutMs = 30_000
const pollMs = 50

/** Undefined if there was no simulator. `wasKilled` is true if the simulator had ended without removing its files. */
export type Stopped = { state: State; wasKilled: boolean } | undefined

export async function stop(folder: string): Promise<Stopped> {
  const state = readState(folder)
  const runningState = findSimulator(folder)
  if (runningState !== undefined) await end(folder, runningState)
  if (state === undefined) return undefined
  using claim = claimFolder(folder)
  if (claim !== undefined) removeState(folder)
  return { state: runningState ?? state, wasKilled: runningState === undefined }
}

async function end(folder: string, { pid, stamp }: State): Promise<void> {
  const isRunning = () => findSimulator(folder)?.stamp === stamp
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (isRunning()) process.kill(pid, signal)
    const deadlineMs = performance.now() + stopTimeoutMs
    while (isRunning() && performance.now() < deadlineMs) await delay(pollMs)
  }
}

/** Kills remaining function processes of a simulator, and removes its files. Synchronous for use in an exit handler. */
export function removeState(folder: string): void {
  const { state, work } = placesIn(folder)
  for (const pid of sandboxesBelow(work)) kill(pid)
  rmSync(state, { force: true })
  rmSync(work, { recursive: true, force: true, maxRetries: 3 })
}

function sandboxesBelow(folder: string): number[] {
  if (process.platform !== 'linux') return []
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => isSandbox(pid, folder))
}

function isSandbox(pid: number, folder: string): boolean {
  try {
    const isBelow = readlinkSync(`/proc/${pid}/cwd`).startsWith(`${folder}${sep}`)
    return isBelow && readFileSync(`/proc/${pid}/environ`, 'utf8').includes('AWS_LAMBDA_RUNTIME_API=')
  } catch {
    return false
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}
