import { execFile } from 'node:child_process'
import { mkdir, rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { systemPath } from './launcher.ts'

/** Removes a folder of the platform, regardless of the files and permissions that a module has created in it. */
export async function removeFolder(path: string): Promise<void> {
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 3 })
  await remove().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EACCES' && error.code !== 'EPERM') throw error
    await promisify(execFile)('chmod', ['-R', 'u+rwx', path], { env: { PATH: systemPath } })
    await remove()
  })
}

/** Creates an empty folder that only the platform can access. */
export async function emptyFolder(path: string): Promise<void> {
  await removeFolder(path)
  await mkdir(path, { recursive: true, mode: 0o700 })
}
