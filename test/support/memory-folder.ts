import { chmodSync, mkdtempSync, readFileSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

const path = '/dev/shm'
const minFreeBytes = 2 * 1024 ** 3

function isUsable(): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === path)
    return bavail * bsize >= minFreeBytes && mount !== undefined && !/\bnoexec\b/.test(mount)
  } catch {
    return false
  }
}

/**
 * Moves the temporary folders of this process and its children into memory, if there is room for them and programs may
 * run there. Tests write many small files, which costs more on a disk.
 */
export function useMemoryForTemporaryFolders(): void {
  if (process.env['TMPDIR'] !== undefined || !isUsable()) return
  // Short, because the length of socket paths is limited.
  const folder = mkdtempSync(join(path, 't-'))
  // Some tests run programs as another user.
  chmodSync(folder, 0o1777)
  process.env['TMPDIR'] = folder
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
}
