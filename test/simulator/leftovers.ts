import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { sep } from 'node:path'
import { placesIn } from './state.ts'

/**
 * Removes everything but the log of a stopped simulator: frozen processes of functions, state and files. Synchronous,
 * because it runs on exit.
 */
export function removeLeftovers(folder: string): void {
  const { state, work } = placesIn(folder)
  for (const pid of sandboxesBelow(work)) kill(pid)
  rmSync(state, { force: true })
  rmSync(work, { recursive: true, force: true, maxRetries: 3 })
}

/** Processes of functions whose code is below a folder. Linux only. */
function sandboxesBelow(folder: string): number[] {
  if (process.platform !== 'linux') return []
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => isSandbox(pid, folder))
}

function isSandbox(pid: number, folder: string): boolean {
  try {
    const isThere = readlinkSync(`/proc/${pid}/cwd`).startsWith(`${folder}${sep}`)
    return isThere && readFileSync(`/proc/${pid}/environ`, 'utf8').includes('AWS_LAMBDA_RUNTIME_API=')
  } catch {
    return false
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has just ended.
  }
}
