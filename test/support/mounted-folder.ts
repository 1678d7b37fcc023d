import { execFileSync } from 'node:child_process'
import { temporaryFolder } from './temporary-folder.ts'

/** Mounting needs root and a kernel that allows it. */
export const canMount: boolean = await mountedFolder('1m').then(
  async (folder) => {
    await folder[Symbol.asyncDispose]()
    return true
  },
  () => false,
)

/** A file system of its own, in memory. */
export async function mountedFolder(size: string): Promise<{ path: string } & AsyncDisposable> {
  const folder = await temporaryFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', folder.path], { stdio: 'ignore' })
  return {
    path: folder.path,
    async [Symbol.asyncDispose]() {
      execFileSync('umount', ['--lazy', folder.path])
      await folder[Symbol.asyncDispose]()
    },
  }
}
