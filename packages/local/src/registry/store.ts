import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { digestOf } from '@platform/oci/digest'
import { type Disk, namesIn, openDisk, sizeOf, textOf } from './disk.ts'

/** A stored manifest: its bytes and the type it was pushed with. */
export interface StoredManifest {
  digest: string
  mediaType: string
  bytes: Buffer
}

/**
 * Content by digest, shared by all repositories, and the references of each repository. Names that begin with `_` are
 * no repositories.
 */
export interface Store {
  disk: Disk
  /** The content of a blob; undefined if the repository does not have it. */
  blob: (repository: string, digest: string) => Promise<{ path: string; size: number } | undefined>
  /** Moves a verified draft to its digest. */
  storeBlob: (repository: string, digest: string, draft: string) => Promise<void>
  /** Adds a blob of another repository; returns whether that one has it. */
  mountBlob: (repository: string, digest: string, from: string) => Promise<boolean>
  removeBlob: (repository: string, digest: string) => Promise<boolean>
  /** By tag or digest. */
  manifest: (repository: string, reference: string) => Promise<StoredManifest | undefined>
  hasManifest: (repository: string, digest: string) => Promise<boolean>
  /** Stores a manifest, and lists it as a referrer of its subject. */
  addManifest: (repository: string, mediaType: string, bytes: Uint8Array, subject?: string) => Promise<string>
  /** Points a tag to a manifest of the repository. */
  setTag: (repository: string, tag: string, digest: string) => Promise<void>
  /** Removes a tag, or by digest a manifest with all its tags; returns whether it existed. */
  removeManifest: (repository: string, reference: string) => Promise<boolean>
  /** Sorted; undefined for a repository that never had a manifest. */
  tags: (repository: string) => Promise<string[] | undefined>
  referrers: (repository: string, subject: string) => Promise<StoredManifest[]>
  /** Those with a manifest, sorted. */
  repositories: () => Promise<string[]>
}

const hexOf = (digest: string): string => digest.slice('sha256:'.length)

/** The paths below a folder. */
function layout(folder: string) {
  const repositories = join(folder, 'repositories')
  return {
    drafts: join(folder, 'drafts'),
    repositories,
    content: (digest: string) => join(folder, 'content', hexOf(digest).slice(0, 2), hexOf(digest)),
    blob: (repository: string, digest: string) => join(repositories, repository, '_blobs', hexOf(digest)),
    /** Contains the type of a manifest. */
    manifest: (repository: string, digest: string) => join(repositories, repository, '_manifests', hexOf(digest)),
    manifests: (repository: string) => join(repositories, repository, '_manifests'),
    /** Contains the digest of a tag. */
    tag: (repository: string, tag: string) => join(repositories, repository, '_tags', tag),
    tags: (repository: string) => join(repositories, repository, '_tags'),
    referrers: (repository: string, subject: string) => join(repositories, repository, '_referrers', hexOf(subject)),
  }
}

/** Opens or creates the store in a folder, for one process at a time. */
export async function openStore(folder: string): Promise<Store> {
  const at = layout(folder)
  const disk = await openDisk(at.drafts)
  const hasManifest = async (repository: string, digest: string) =>
    (await sizeOf(at.manifest(repository, digest))) !== undefined

  const blob: Store['blob'] = async (repository, digest) => {
    if ((await sizeOf(at.blob(repository, digest))) === undefined) return undefined
    const path = at.content(digest)
    const size = await sizeOf(path)
    return size === undefined ? undefined : { path, size }
  }
  const byDigest = async (repository: string, digest: string): Promise<StoredManifest | undefined> => {
    const mediaType = await textOf(at.manifest(repository, digest))
    return mediaType === undefined ? undefined : { digest, mediaType, bytes: await readFile(at.content(digest)) }
  }
  const resolveReference = async (repository: string, reference: string) =>
    reference.includes(':') ? reference : textOf(at.tag(repository, reference))

  return {
    disk,
    blob,
    hasManifest,
    storeBlob: async (repository, digest, draft) => {
      await disk.place(draft, at.content(digest))
      await disk.write(at.blob(repository, digest), '')
    },
    mountBlob: async (repository, digest, from) => {
      if ((await blob(from, digest)) === undefined) return false
      await disk.write(at.blob(repository, digest), '')
      return true
    },
    removeBlob: (repository, digest) => removeFile(at.blob(repository, digest)),
    manifest: async (repository, reference) => {
      const digest = await resolveReference(repository, reference)
      return digest === undefined ? undefined : byDigest(repository, digest)
    },
    addManifest: async (repository, mediaType, bytes, subject) => {
      const digest = digestOf(bytes)
      await disk.write(at.content(digest), bytes)
      if (subject !== undefined) await disk.write(join(at.referrers(repository, subject), hexOf(digest)), '')
      // Written last, because it makes the manifest visible.
      await disk.write(at.manifest(repository, digest), mediaType)
      return digest
    },
    setTag: (repository, tag, digest) => disk.write(at.tag(repository, tag), digest),
    removeManifest: async (repository, reference) => {
      if (!reference.includes(':')) return removeFile(at.tag(repository, reference))
      for (const tag of await namesIn(at.tags(repository))) {
        const path = at.tag(repository, tag)
        if ((await textOf(path)) === reference) await removeFile(path)
      }
      return removeFile(at.manifest(repository, reference))
    },
    tags: async (repository) =>
      (await sizeOf(at.manifests(repository))) === undefined ? undefined : namesIn(at.tags(repository)),
    referrers: async (repository, subject) => {
      const names = await namesIn(at.referrers(repository, subject))
      const found = await Promise.all(names.map((hex) => byDigest(repository, `sha256:${hex}`)))
      return found.filter((manifest) => manifest !== undefined)
    },
    repositories: () => repositoriesBelow(at.repositories, ''),
  }
}

async function removeFile(path: string): Promise<boolean> {
  if ((await sizeOf(path)) === undefined) return false
  await rm(path, { force: true })
  return true
}

async function repositoriesBelow(root: string, name: string): Promise<string[]> {
  const folder = join(root, name)
  const parts = (await namesIn(folder)).filter((part) => !part.startsWith('_'))
  const below = await Promise.all(parts.map((part) => repositoriesBelow(root, join(name, part))))
  const isOne = (await namesIn(join(folder, '_manifests'))).length > 0
  return [...(isOne ? [name] : []), ...below.flat()].toSorted()
}
