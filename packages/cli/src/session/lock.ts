import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, hasCode } from '../exit.ts'
import { makeFolder } from '@platform/oci/make-folder'
import { inFolder, lockPathOf } from './store.ts'

const pollMs = 25
// This is longer than a renewal, whose response timeout is 15 seconds.
const staleAfterMs = 30_000
const timeoutMs = 45_000

/**
 * Runs work on a context in only one process of this user at a time. A lock is replaced if its process has died or if
 * it is older than 30 seconds. Throws `CliError` if the lock is not released within 45 seconds.
 */
export async function withLock<Result>(context: string, work: () => Promise<Result>): Promise<Result> {
  const path = lockPathOf(context)
  const owner = `${process.pid} ${hostname()} ${randomUUID()}`
  await acquire(path, owner)
  try {
    return await work()
  } finally {
    if (contentOf(path) === owner) rmSync(path, { force: true })
  }
}

async function acquire(path: string, owner: string): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  const ownPath = `${path}.${process.pid}.${randomUUID()}`
  inFolder(() => {
    makeFolder(dirname(path))
    writeFileSync(ownPath, owner, { mode: 0o600 })
  })
  try {
    while (!tryLock(ownPath, path)) {
      clearStale(path)
      if (performance.now() > deadlineMs) {
        throw new CliError('refused', `Another plat process has locked ${path}. If none is running, remove the file.`)
      }
      await sleep(pollMs)
    }
  } finally {
    rmSync(ownPath, { force: true })
  }
}

function tryLock(ownPath: string, path: string): boolean {
  // The age of the lock counts from its acquisition, not from the start of the wait.
  const now = new Date()
  utimesSync(ownPath, now, now)
  try {
    // Creating a link is atomic, so no process reads a partly written lock.
    linkSync(ownPath, path)
    return true
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false
    throw error
  }
}

function clearStale(path: string): void {
  const holder = contentOf(path)
  if (holder === undefined || !isStale(holder, path)) return
  const stalePath = `${path}.${process.pid}.stale`
  try {
    renameSync(path, stalePath)
    // If two processes find the same stale lock, the second one may move the new lock and must restore it.
    if (contentOf(stalePath) === holder) rmSync(stalePath)
    else renameSync(stalePath, path)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}

function isStale(holder: string, path: string): boolean {
  const [pid, host] = holder.split(' ')
  if (host === hostname() && !isAlive(Number(pid))) return true
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats !== undefined && Math.abs(Date.now() - stats.mtimeMs) > staleAfterMs
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0) && !isZombie(pid)
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
}

// A container without an init process keeps zombies. This file exists only on Linux.
function isZombie(pid: number): boolean {
  const stat = contentOf(`/proc/${pid}/stat`) ?? ''
  return /^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}
