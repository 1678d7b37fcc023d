import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { version } from '@platform/contract/manifest'
import type { FetchedRelease } from '@platform/core/updates/record'
import * as z from 'zod'
import { renameDurably, writeFiles } from './durable.ts'
import type { Files } from './zip.ts'

/** Releases are stored in `<version>-<12 hex digits>/functions/<name>/index.mjs` and described by `release.json`. */

const Description = z.strictObject({
  version,
  repository: z.string().exactOptional(),
  digest: z.string(),
  /** Infrastructure of the platform that fetched the release. */
  infrastructure: z.string(),
  functionNames: z.array(z.string()),
  /** Path → SHA-256 in hexadecimal, of all files except the description. */
  files: z.record(z.string(), z.string()),
})
type Description = z.infer<typeof Description>

export interface StoredRelease extends Omit<Description, 'files'> {
  /** Absolute path. */
  folder: string
}

/** A release folder does not match its `release.json`, or is that of another release. */
export class DamagedRelease extends Error {
  override readonly name = 'DamagedRelease'
}

const descriptionFile = 'release.json'
const draftSuffix = '.draft'

export const folderName = (release: FetchedRelease): string =>
  `${release.version}-${release.digest.replace('sha256:', '').slice(0, 12)}`

const draftFolder = (releasesDir: string, release: FetchedRelease): string =>
  join(releasesDir, `${folderName(release)}${draftSuffix}`)

/**
 * Verifies all files of a release. Returns undefined if the release is not stored. Throws `DamagedRelease` if a file is
 * missing, unknown or damaged, or the folder is that of another release.
 */
export async function readRelease(releasesDir: string, release: FetchedRelease): Promise<StoredRelease | undefined> {
  const folder = join(releasesDir, folderName(release))
  const digests = await digestsIn(folder)
  if (digests === undefined) return undefined
  const { files, ...description } = await readDescription(folder)
  if (description.digest !== release.digest) throw new DamagedRelease(`${folder} holds another release`)
  const paths = new Set([...Object.keys(files), ...digests.keys()])
  const damagedPaths = [...paths].filter((path) => files[path] !== digests.get(path))
  if (damagedPaths.length > 0)
    throw new DamagedRelease(`${damagedPaths.slice(0, 3).join(', ')} in ${folder} is damaged or missing`)
  return { ...description, folder }
}

async function readDescription(folder: string): Promise<Description> {
  try {
    return Description.parse(JSON.parse(await readFile(join(folder, descriptionFile), 'utf8')))
  } catch (cause) {
    throw new DamagedRelease(`${descriptionFile} in ${folder} is damaged or missing`, { cause })
  }
}

export async function listDraftedFunctions(releasesDir: string, release: FetchedRelease): Promise<ReadonlySet<string>> {
  const functions = join(draftFolder(releasesDir, release), 'functions')
  const entries = await readdir(functions, { recursive: true, withFileTypes: true }).catch(ignoreMissing)
  const programs = entries?.filter((entry) => entry.isFile() && entry.name === 'index.mjs') ?? []
  return new Set(programs.map(({ parentPath }) => relative(functions, parentPath).replaceAll(sep, '/')))
}

/** Adds a function to the draft of its release, completely or not at all. */
export async function draftFunction(
  releasesDir: string,
  { release, name, files }: { release: FetchedRelease; name: string; files: Files },
): Promise<void> {
  const folder = join(draftFolder(releasesDir, release), 'functions', name)
  try {
    await writeFiles(folder, files)
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

/** Turns the draft into a stored release, and replaces a damaged copy of that release. */
export async function sealDraft(releasesDir: string, description: Omit<Description, 'files'>): Promise<void> {
  const draft = draftFolder(releasesDir, description)
  const files = Object.fromEntries((await digestsIn(draft)) ?? [])
  await writeFiles(
    draft,
    new Map([[descriptionFile, JSON.stringify({ ...description, files } satisfies Description, null, 2)]]),
  )
  const folder = join(releasesDir, folderName(description))
  await rm(folder, { recursive: true, force: true })
  await renameDurably(draft, folder)
}

/** Removes drafts, because a killed process may have left incomplete files in them. */
export const removeDrafts = (releasesDir: string): Promise<void> =>
  removeFolders(releasesDir, (name) => name.endsWith(draftSuffix))

/** Keeps only the folders with these names, and their drafts. */
export const removeAllBut = (releasesDir: string, names: ReadonlySet<string>): Promise<void> =>
  removeFolders(releasesDir, (name) => !names.has(name.replace(/\.draft$/, '')))

async function removeFolders(releasesDir: string, isRemovable: (name: string) => boolean): Promise<void> {
  await mkdir(releasesDir, { recursive: true, mode: 0o700 })
  const entries = await readdir(releasesDir, { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory() && isRemovable(entry.name))
  await Promise.all(folders.map(({ name }) => rm(join(releasesDir, name), { recursive: true, force: true })))
}

/**
 * Returns path → digest for all files below a folder except the description; the digest of a link or device is `''`.
 * Returns undefined if the folder does not exist.
 */
async function digestsIn(folder: string): Promise<Map<string, string> | undefined> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(ignoreMissing)
  if (entries === undefined) return undefined
  const digests = new Map<string, string>()
  for (const entry of entries.filter((each) => !each.isDirectory())) {
    const path = join(entry.parentPath, entry.name)
    const name = relative(folder, path).replaceAll(sep, '/')
    // oxlint-disable-next-line no-await-in-loop -- one file in memory at a time
    if (name !== descriptionFile) digests.set(name, entry.isFile() ? sha256(await readFile(path)) : '')
  }
  return digests
}

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
