import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Files that are written completely or not at all, even if the process ends. */
export interface Disk {
  /** A path for a new file. Drafts of a killed process are removed at the next start. */
  draft: () => string
  /** Moves a draft to its path, and replaces an existing file. */
  place: (draft: string, path: string) => Promise<void>
  write: (path: string, content: string | Uint8Array) => Promise<void>
}

/** Prepares a folder for drafts, which must be on the same file system. */
export async function openDisk(drafts: string): Promise<Disk> {
  await rm(drafts, { recursive: true, force: true })
  await mkdir(drafts, { recursive: true, mode: 0o700 })
  const draft = () => join(drafts, randomUUID())
  const write = async (path: string, content: string | Uint8Array) => {
    const from = draft()
    await writeFile(from, content, { mode: 0o600 })
    await place(from, path)
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
  <Other>(other: Other) =>
  (error: NodeJS.ErrnoException): Other => {
    // ENOTDIR: a file exists where a folder is expected.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return other
    throw error
  }

/** The names in a folder, sorted; empty if it does not exist. */
export const namesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(ifMissing<string[]>([]))).toSorted()

/** The size of a file; undefined if it does not exist. */
export const sizeOf = async (path: string): Promise<number | undefined> =>
  (await stat(path).catch(ifMissing(undefined)))?.size

/** The text of a file; undefined if it does not exist. */
export const textOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(ifMissing(undefined))
