import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The leader of a process group; the stamp distinguishes it from a later process with the same id. */
export type Leader = { pid: number; stamp: string }

/** Distinguishes this process from every other with the same id; undefined if it does not exist. */
export function stampOf(pid: number): string | undefined {
  try {
    return process.platform === 'linux' ? linuxStamp(pid) : bsdStamp(pid)
  } catch {
    return undefined
  }
}

/** Whether the stamped process still runs. */
export function isAlive({ pid, stamp }: Leader): boolean {
  return stampOf(pid) === stamp
}

/** Signals every process of a group; false if there is none. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

function linuxStamp(pid: number): string {
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The name in parentheses may contain spaces; field 3 follows it, and field 22 is the start time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return `${boot} ${fields[19]}`
}

function bsdStamp(pid: number): string {
  return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
}
