import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** The leader of a process group. The stamp distinguishes it from a later process with the same id. */
export type Leader = { pid: number; stamp: string }

/** Returns the stamp of the process with this id, or undefined if there is no such process. A zombie has a stamp. */
export function stampOf(pid: number): string | undefined {
  return processOf(pid)?.stamp
}

/** Whether the process with this stamp is still running. A zombie is not running. */
export function isAlive({ pid, stamp }: Leader): boolean {
  const processInfo = processOf(pid)
  return processInfo?.stamp === stamp && !isZombie(processInfo.state)
}

/** Sends a signal to every process of a group. Returns false if there is no such group or it cannot be signalled. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch {
    return false
  }
}

/** Returns the number of running processes of a group. Zombies do not count, because they may never be reaped. */
export function countMembers(groupId: number): number {
  if (!signalGroup(groupId, 0)) return 0
  const states = process.platform === 'linux' ? linuxStates(groupId) : bsdStates(groupId)
  return states.filter((state) => !isZombie(state)).length
}

type ProcessInfo = { stamp: string; state: string }

function processOf(pid: number): ProcessInfo | undefined {
  try {
    return process.platform === 'linux' ? readLinuxProcess(pid) : readBsdProcess(pid)
  } catch {
    return undefined
  }
}

const isZombie = (state: string): boolean => /^[ZX]/.test(state)

let bootId: string | undefined

function readLinuxProcess(pid: number): ProcessInfo {
  bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  const fields = linuxFields(pid)
  return { stamp: `${bootId} ${fields[19]}`, state: fields[0]! }
}

// Returns the fields of `stat` from field 3 on: the state, the parent and the group. Field 22 is the start time. Field
// 2, the process name in parentheses, may contain spaces.
function linuxFields(pid: number | string): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}

function linuxStates(groupId: number): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    try {
      const [state = '', , group] = linuxFields(pid)
      return group === String(groupId) ? [state] : []
    } catch {
      // The process has ended.
      return []
    }
  })
}

function readBsdProcess(pid: number): ProcessInfo {
  const [state = '', ...start] = ps('-o', 'stat=,lstart=', '-p', String(pid)).trim().split(/\s+/)
  return { stamp: start.join(' '), state }
}

function bsdStates(groupId: number): string[] {
  const rows = ps('-A', '-o', 'pgid=,stat=').trim().split('\n')
  return rows.flatMap((row) => {
    const [group, state = ''] = row.trim().split(/\s+/)
    return group === String(groupId) ? [state] : []
  })
}

function ps(...args: string[]): string {
  return execFileSync('ps', args, { encoding: 'utf8' })
}
