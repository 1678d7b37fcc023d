import { createHash } from 'node:crypto'
import { lstat, mkdir } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { checkRunFolder } from '@platform/worker/runtimes/supervised'
import { StartError } from '../start-error.ts'

/**
 * Returns the folder for the sockets of modules: below the data folder, or in the temporary folder if the path would be
 * too long for sockets. Throws `StartError` if another user owns or may access the folder in the temporary folder.
 */
export async function runFolderFor(dataDir: string): Promise<string> {
  const preferredFolder = join(dataDir, 'modules', 'run')
  try {
    checkRunFolder(preferredFolder)
    return preferredFolder
  } catch {
    const { uid } = userInfo()
    const folder = join(tmpdir(), `platform-${uid}-${createHash('sha256').update(dataDir).digest('hex').slice(0, 12)}`)
    await mkdir(folder, { mode: 0o700 }).catch(() => undefined)
    const entry = await lstat(folder)
    const isOwn = entry.isDirectory() && entry.uid === uid && (entry.mode & 0o077) === 0
    if (!isOwn)
      throw new StartError(`${folder} belongs to another user. Set PLAT_DATA_DIR to a folder with a shorter path.`)
    return join(folder, 'run')
  }
}
