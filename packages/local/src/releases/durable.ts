import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'

/** Writes that are durable when a call resolves, without blocking the thread. */

/** A name in a folder is durable only after the folder is synced. */
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

/** Creates the folder if necessary. A failed call may leave some files behind. */
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

/** Renames within one folder, atomically. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to)
  await syncFolder(dirname(to))
}

export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.draft`
  await writeSynced(draft, text)
  await renameDurably(draft, path)
}

export async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true })
  await syncFolder(dirname(path))
}
