import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { temporaryFolder } from './temporary-folder.ts'

/** Mounting needs root, and a kernel that permits it. */
export const canMount: boolean = await mountedFolder('1m').then(
  async (folder) => {
    await folder[Symbol.asyncDispose]()
    return true
  },
  () => false,
)

/** Mounts a file system in memory. Mount options may follow the size: `8m,noexec`. */
export async function mountedFolder(size: string, path?: string): Promise<{ path: string } & AsyncDisposable> {
  const folder = await temporaryFolder()
  const mountPoint = path ?? folder.path
  mkdirSync(mountPoint, { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=750`, 'tmpfs', mountPoint], { stdio: 'ignore' })
  return {
    path: mountPoint,
    async [Symbol.asyncDispose]() {
      execFileSync('umount', ['--lazy', mountPoint])
      await folder[Symbol.asyncDispose]()
    },
  }
}
