import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { digestOf } from '@platform/oci/digest'
import { type Disk, namesIn, openDisk, sizeOf, textOf } from './disk.ts'

/** `mediaType` is the type that the manifest was pushed with. */
export interface StoredManifest {
  digest: string
  mediaType: string
  bytes: Buffer
}

/**
 * Stores content by digest, shared by all repositories, and the references of each repository. Folders whose name
 * begins with `_` are not repositories.
 */
export interface Store {
  disk: Disk
  /** Returns undefined if the repository does not have the blob. */
  blob: (repository: string, digest: string) => Promise<{ path: string; size: number } | undefined>
  /** Moves a draft with a verified digest into the store. */
  storeBlob: (repository: string, digest: string, draft: string) => Promise<void>
  /** Adds a blob of another repository. Returns false if the other repository does not have it. */
  mountBlob: (repository: string, digest: string, from: string) => Promise<boolean>
  removeBlob: (repository: string, digest: string) => Promise<boolean>
  /** Accepts a tag or a digest. */
  manifest: (repository: string, reference: string) => Promise<StoredManifest | undefined>
  hasManifest: (repository: string, digest: string) => Promise<boolean>
  /** Stores a manifest, and lists it as a referrer of its subject if there is one. Returns the digest. */
  addManifest: (repository: string, mediaType: string, bytes: Uint8Array, subject?: string) => Promise<string>
  /** The manifest must be in the repository. */
  setTag: (repository: string, tag: string, digest: string) => Promise<void>
  /** Removes a tag or, by digest, a manifest with all its tags. Returns whether it existed. */
  removeManifest: (repository: string, reference: string) => Promise<boolean>
  /** Returns sorted tags; undefined for a repository that never had a manifest. */
  tags: (repository: string) => Promise<string[] | undefined>
  referrers: (repository: string, subject: string) => Promise<StoredManifest[]>
  /** Returns the sorted names of the repositories that have a manifest. */
  repositories: () => Promise<string[]>
}

const hexOf = (digest: string): string => digest.slice('sha256:'.length)

function layout(folder: string) {
  const repositories = join(folder, 'repositories')
  return {
    drafts: join(folder, 'drafts'),
    repositories,
    content: (digest: string) => join(folder, 'content', hexOf(digest).slice(0, 2), hexOf(digest)),
    blob: (repository: string, digest: string) => join(repositories, repository, '_blobs', hexOf(digest)),
    /** The file contains the media type of the manifest. */
    manifest: (repository: string, digest: string) => join(repositories, repository, '_manifests', hexOf(digest)),
    manifests: (repository: string) => join(repositories, repository, '_manifests'),
    /** The file contains the digest that the tag refers to. */
    tag: (repository: string, tag: string) => join(repositories, repository, '_tags', tag),
    tags: (repository: string) => join(repositories, repository, '_tags'),
    referrers: (repository: string, subject: string) => join(repositories, repository, '_referrers', hexOf(subject)),
  }
}

/** Creates the store if necessary. Only one process at a time may open a folder. */
export async function openStore(folder: string): Promise<Store> {
  const paths = layout(folder)
  const disk = await openDisk(paths.drafts)
  const hasManifest = async (repository: string, digest: string) =>
    (await sizeOf(paths.manifest(repository, digest))) !== undefined

  const blob: Store['blob'] = async (repository, digest) => {
    if ((await sizeOf(paths.blob(repository, digest))) === undefined) return undefined
    const path = paths.content(digest)
    const size = await sizeOf(path)
    return size === undefined ? undefined : { path, size }
  }
  const findByDigest = async (repository: string, digest: string): Promise<StoredManifest | undefined> => {
    const mediaType = await textOf(paths.manifest(repository, digest))
    return mediaType === undefined ? undefined : { digest, mediaType, bytes: await readFile(paths.content(digest)) }
  }
  const resolveReference = async (repository: string, reference: string) =>
    reference.includes(':') ? reference : textOf(paths.tag(repository, reference))

  return {
    disk,
    blob,
    hasManifest,
    storeBlob: async (repository, digest, draft) => {
      await disk.place(draft, paths.content(digest))
      await disk.write(paths.blob(repository, digest), '')
    },
    mountBlob: async (repository, digest, from) => {
      if ((await blob(from, digest)) === undefined) return false
      await disk.write(paths.blob(repository, digest), '')
      return true
    },
    removeBlob: (repository, digest) => removeFile(paths.blob(repository, digest)),
    manifest: async (repository, reference) => {
      const digest = await resolveReference(repository, reference)
      return digest === undefined ? undefined : findByDigest(repository, digest)
    },
    addManifest: async (repository, mediaType, bytes, subject) => {
      const digest = digestOf(bytes)
      await disk.write(paths.content(digest), bytes)
      if (subject !== undefined) await disk.write(join(paths.referrers(repository, subject), hexOf(digest)), '')
      // This file is written last, because it makes the manifest visible.
      await disk.write(paths.manifest(repository, digest), mediaType)
      return digest
    },
    setTag: (repository, tag, digest) => disk.write(paths.tag(repository, tag), digest),
    removeManifest: async (repository, reference) => {
      if (!reference.includes(':')) return removeFile(paths.tag(repository, reference))
      for (const tag of await namesIn(paths.tags(repository))) {
        const path = paths.tag(repository, tag)
        if ((await textOf(path)) === reference) await removeFile(path)
      }
      return removeFile(paths.manifest(repository, reference))
    },
    tags: async (repository) =>
      (await sizeOf(paths.manifests(repository))) === undefined ? undefined : namesIn(paths.tags(repository)),
    referrers: async (repository, subject) => {
      const names = await namesIn(paths.referrers(repository, subject))
      const manifests = await Promise.all(names.map((hex) => findByDigest(repository, `sha256:${hex}`)))
      return manifests.filter((manifest) => manifest !== undefined)
    },
    repositories: () => repositoriesBelow(paths.repositories, ''),
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
  const nestedRepositories = await Promise.all(parts.map((part) => repositoriesBelow(root, join(name, part))))
  const isRepository = (await namesIn(join(folder, '_manifests'))).length > 0
  return [...(isRepository ? [name] : []), ...nestedRepositories.flat()].toSorted()
}
