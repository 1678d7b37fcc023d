import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { version } from '@platform/contract/manifest'
import type { FetchedRelease } from '@platform/core/updates/record'
import * as z from 'zod'
import { renameDurably, writeFiles } from './durable.ts'
import type { Files } from './zip.ts'

/**
 * Releases on the disk: `<folder>/<version>-<12 hex digits>/functions/<name>/index.mjs`, described by `release.json`.
 */

const Note = z.strictObject({
  version,
  repository: z.string().exactOptional(),
  digest: z.string(),
  /** Of the platform that fetched it. */
  infrastructure: z.string(),
  functionNames: z.array(z.string()),
  /** Path → SHA-256, in hexadecimal, of all files but this one. */
  files: z.record(z.string(), z.string()),
})
type Note = z.infer<typeof Note>

/** A stored release. */
export interface StoredRelease extends Omit<Note, 'files'> {
  /** Absolute path. */
  folder: string
}

/** The folder of a release differs from what was written. */
export class DamagedRelease extends Error {
  override readonly name = 'DamagedRelease'
}

const noteFile = 'release.json'
const draftSuffix = '.draft'

export const folderName = (release: FetchedRelease): string =>
  `${release.version}-${release.digest.replace('sha256:', '').slice(0, 12)}`

const draftOf = (releasesDir: string, release: FetchedRelease): string =>
  join(releasesDir, `${folderName(release)}${draftSuffix}`)

/** The release, verified against its digests; undefined if it is not stored. Throws `DamagedRelease`. */
export async function readRelease(releasesDir: string, release: FetchedRelease): Promise<StoredRelease | undefined> {
  const folder = join(releasesDir, folderName(release))
  const found = await digestsIn(folder)
  if (found === undefined) return undefined
  const { files, ...note } = await noteIn(folder)
  if (note.digest !== release.digest) throw new DamagedRelease(`${folder} holds another release`)
  const paths = new Set([...Object.keys(files), ...found.keys()])
  const wrong = [...paths].filter((path) => files[path] !== found.get(path))
  if (wrong.length > 0) throw new DamagedRelease(`${wrong.slice(0, 3).join(', ')} in ${folder} is damaged or missing`)
  return { ...note, folder }
}

async function noteIn(folder: string): Promise<Note> {
  try {
    return Note.parse(JSON.parse(await readFile(join(folder, noteFile), 'utf8')))
  } catch (cause) {
    throw new DamagedRelease(`${noteFile} in ${folder} is damaged or missing`, { cause })
  }
}

/** The functions that a draft already has. */
export async function draftedFunctions(releasesDir: string, release: FetchedRelease): Promise<ReadonlySet<string>> {
  const functions = join(draftOf(releasesDir, release), 'functions')
  const entries = await readdir(functions, { recursive: true, withFileTypes: true }).catch(ignoreMissing)
  const programs = entries?.filter((entry) => entry.isFile() && entry.name === 'index.mjs') ?? []
  return new Set(programs.map(({ parentPath }) => relative(functions, parentPath).replaceAll(sep, '/')))
}

/** Adds a function to the draft of its release, completely or not at all. */
export async function draftFunction(
  releasesDir: string,
  { release, name, files }: { release: FetchedRelease; name: string; files: Files },
): Promise<void> {
  const folder = join(draftOf(releasesDir, release), 'functions', name)
  try {
    await writeFiles(folder, files)
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

/** Turns the draft into the release, and replaces a damaged one. */
export async function sealDraft(releasesDir: string, note: Omit<Note, 'files'>): Promise<void> {
  const draft = draftOf(releasesDir, note)
  const files = Object.fromEntries((await digestsIn(draft)) ?? [])
  await writeFiles(draft, new Map([[noteFile, JSON.stringify({ ...note, files } satisfies Note, null, 2)]]))
  const folder = join(releasesDir, folderName(note))
  await rm(folder, { recursive: true, force: true })
  await renameDurably(draft, folder)
}

/** Removes drafts, since their state is unknown after a restart. */
export const removeDrafts = (releasesDir: string): Promise<void> =>
  removeFolders(releasesDir, (name) => name.endsWith(draftSuffix))

/** Removes all releases and drafts except these folder names. */
export const removeAllBut = (releasesDir: string, names: ReadonlySet<string>): Promise<void> =>
  removeFolders(releasesDir, (name) => !names.has(name.replace(/\.draft$/, '')))

async function removeFolders(releasesDir: string, isToGo: (name: string) => boolean): Promise<void> {
  await mkdir(releasesDir, { recursive: true, mode: 0o700 })
  const entries = await readdir(releasesDir, { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory() && isToGo(entry.name))
  await Promise.all(folders.map(({ name }) => rm(join(releasesDir, name), { recursive: true, force: true })))
}

/**
 * Path → digest of all files below a folder except the note, `''` for anything that is no file; undefined without a
 * folder.
 */
async function digestsIn(folder: string): Promise<Map<string, string> | undefined> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(ignoreMissing)
  if (entries === undefined) return undefined
  const digests = new Map<string, string>()
  for (const entry of entries.filter((each) => !each.isDirectory())) {
    const path = join(entry.parentPath, entry.name)
    const name = relative(folder, path).replaceAll(sep, '/')
    // oxlint-disable-next-line no-await-in-loop -- one file in memory at a time
    if (name !== noteFile) digests.set(name, entry.isFile() ? sha256(await readFile(path)) : '')
  }
  return digests
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
