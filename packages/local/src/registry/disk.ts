import { randomUUID } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Files that are there whole or not at all, whenever the process ends. */
export interface Disk {
  /** Where a file may be written that has no place yet. Drafts of a process that was killed go at the next start. */
  draft: () => string
  /** Gives a draft its place, over what is there. */
  place: (draft: string, path: string) => Promise<void>
  write: (path: string, content: string | Uint8Array) => Promise<void>
}

/** Prepares a folder for drafts, which must lie beside their places. */
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
  // A name that outlives a power cut must not lead to content that did not.
  await using file = await open(draft, 'r+')
  await file.sync()
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rename(draft, path)
}

const ifMissing =
  <Other>(other: Other) =>
  (error: NodeJS.ErrnoException): Other => {
    // ENOTDIR: a file stands where a folder was asked for.
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return other
    throw error
  }

/** The names in a folder, sorted; none where there is no such folder. */
export const namesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(ifMissing<string[]>([]))).toSorted()

/** The size of a file; undefined where there is none. */
export const sizeOf = async (path: string): Promise<number | undefined> =>
  (await stat(path).catch(ifMissing(undefined)))?.size

/** The text of a file; undefined where there is none. */
export const textOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(ifMissing(undefined))
