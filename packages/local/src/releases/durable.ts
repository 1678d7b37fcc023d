import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'

/** What is on the disk once a call has settled stays there, whatever happens to the machine. None of it stalls the thread. */

/** A name in a folder is durable once its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

async function writeSynced(path: string, content: string | Uint8Array): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Writes files below a folder, which is made where it is missing; half of them may be there after a failure. */
export async function writeFiles(folder: string, files: ReadonlyMap<string, string | Uint8Array>): Promise<void> {
  const folders = new Set([folder])
  for (const path of files.keys()) {
    const parts = relative(folder, dirname(join(folder, path)))
      .split(sep)
      .filter(Boolean)
    parts.forEach((_, index) => folders.add(join(folder, ...parts.slice(0, index + 1))))
  }
  for (const each of folders) await mkdir(each, { recursive: true })
  await Promise.all([...files].map(([path, content]) => writeSynced(join(folder, path), content)))
  await Promise.all([...folders].map(syncFolder))
}

/** Gives a file or a folder another name in the same folder: it has the one or the other. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to)
  await syncFolder(dirname(to))
}

/** Replaces a file: it holds the old text or the new one, never a part. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.draft`
  await writeSynced(draft, text)
  await renameDurably(draft, path)
}

/** Removes a file that need not be there. */
export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true })
  await syncFolder(dirname(path))
}
