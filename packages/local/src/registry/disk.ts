import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Writes files completely or not at all, even if the process is killed. */
export interface Disk {
  /** Returns a path for a new file. The next start removes drafts of a killed process. */
  draft: () => string
  /** Moves a draft to its path, and replaces an existing file. */
  place: (draft: string, path: string) => Promise<void>
  write: (path: string, content: string | Uint8Array) => Promise<void>
}

/** Renames are atomic only if the drafts folder is on the file system of the other files. */
export async function openDisk(drafts: string): Promise<Disk> {
  await rm(drafts, { recursive: true, force: true })
  await mkdir(drafts, { recursive: true, mode: 0o700 })
  const draft = () => join(drafts, randomUUID())
  const write = async (path: string, content: string | Uint8Array) => {
    const draftPath = draft()
    await writeFile(draftPath, content, { mode: 0o600 })
    await place(draftPath, path)
  }
  return { draft, place, write }
}

async function place(draft: string, path: string): Promise<void> {
  // A name that survives a power loss must not refer to content that did not.
  await using file = await open(draft, 'r+')
  await file.sync()
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rename(draft, path)
}

const ifMissing =
  <Fallback>(fallback: Fallback) =>
  (error: NodeJS.ErrnoException): Fallback => {
    // ENOTDIR: a file exists at the path of an expected folder.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return fallback
    throw error
  }

/** Returns sorted names; none if the folder does not exist. */
export const namesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(ifMissing<string[]>([]))).toSorted()

/** Returns undefined if the file does not exist. */
export const sizeOf = async (path: string): Promise<number | undefined> =>
  (await stat(path).catch(ifMissing(undefined)))?.size

/** Returns undefined if the file does not exist. */
export const textOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(ifMissing(undefined))
