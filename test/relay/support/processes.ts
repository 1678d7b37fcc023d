import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { expect, vi } from 'vitest'

/** Whether a process still executes; a dead one that nobody has collected does not. */
export function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}

/** Returns when the process is gone. */
export async function gone(pid: number): Promise<void> {
  await vi.waitFor(() => expect(isRunning(pid)).toBe(false), { timeout: 20_000 })
}

/** Returns when the file is there. */
export async function appeared(path: string): Promise<void> {
  await vi.waitFor(() => expect(existsSync(path)).toBe(true), { timeout: 20_000 })
}
