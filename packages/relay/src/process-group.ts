import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The leader of a process group. The stamp distinguishes it from a later process with the same id. */
export type Leader = { pid: number; stamp: string }

/** A stamp of the running process with this id, or undefined if there is none. */
export function stampOf(pid: number): string | undefined {
  try {
    return process.platform === 'linux' ? linuxStamp(pid) : bsdStamp(pid)
  } catch {
    return undefined
  }
}

/** Whether the process with this stamp is still running. */
export function isAlive({ pid, stamp }: Leader): boolean {
  return stampOf(pid) === stamp
}

/** Sends a signal to every process of a group. Returns false if the group does not exist. */
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
  // Field 2 is the process name in parentheses and may contain spaces. Field 22 is the start time.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return `${boot} ${fields[19]}`
}

function bsdStamp(pid: number): string {
  return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
}
