import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { digestOf } from '@platform/oci/digest'
import { type Disk, namesIn, openDisk, sizeOf, textOf } from './disk.ts'

/** A manifest as it is kept: its bytes under the type that it was sent with. */
export interface KeptManifest {
  digest: string
  mediaType: string
  bytes: Buffer
}

/**
 * Content by its digest, once for all repositories, and what each repository names of it. Files under names that begin
 * with `_` are no repositories: no part of a repository's name begins so.
 */
export interface Store {
  disk: Disk
  /** Where a blob's content is; undefined where the repository has no such blob. */
  blob: (repository: string, digest: string) => Promise<{ path: string; size: number } | undefined>
  /** Takes a draft of that very digest over. */
  adoptBlob: (repository: string, digest: string, draft: string) => Promise<void>
  /** Gives a repository a blob that another one has; answers whether that one has it. */
  mountBlob: (repository: string, digest: string, from: string) => Promise<boolean>
  removeBlob: (repository: string, digest: string) => Promise<boolean>
  /** By tag or digest. */
  manifest: (repository: string, reference: string) => Promise<KeptManifest | undefined>
  hasManifest: (repository: string, digest: string) => Promise<boolean>
  /** Keeps a manifest, and names it among what refers to its subject. */
  addManifest: (repository: string, mediaType: string, bytes: Uint8Array, subject?: string) => Promise<string>
  /** Lets a tag name a manifest that the repository has. */
  setTag: (repository: string, tag: string, digest: string) => Promise<void>
  /** Removes a tag, or by digest a manifest with all its tags; answers whether there was one. */
  removeManifest: (repository: string, reference: string) => Promise<boolean>
  /** Sorted; undefined where there never was a manifest. */
  tags: (repository: string) => Promise<string[] | undefined>
  referrers: (repository: string, subject: string) => Promise<KeptManifest[]>
  /** Those that have a manifest, sorted. */
  repositories: () => Promise<string[]>
}

const hexOf = (digest: string): string => digest.slice('sha256:'.length)

/** Where everything lies below a folder. */
function layout(folder: string) {
  const repositories = join(folder, 'repositories')
  return {
    drafts: join(folder, 'drafts'),
    repositories,
    content: (digest: string) => join(folder, 'content', hexOf(digest).slice(0, 2), hexOf(digest)),
    blob: (repository: string, digest: string) => join(repositories, repository, '_blobs', hexOf(digest)),
    /** Holds the type of a manifest. */
    manifest: (repository: string, digest: string) => join(repositories, repository, '_manifests', hexOf(digest)),
    manifests: (repository: string) => join(repositories, repository, '_manifests'),
    /** Holds the digest that a tag names. */
    tag: (repository: string, tag: string) => join(repositories, repository, '_tags', tag),
    tags: (repository: string) => join(repositories, repository, '_tags'),
    referrers: (repository: string, subject: string) => join(repositories, repository, '_referrers', hexOf(subject)),
  }
}

/** Opens the store in a folder, or makes one. Only one process at a time may have it. */
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
  const byDigest = async (repository: string, digest: string): Promise<KeptManifest | undefined> => {
    const mediaType = await textOf(at.manifest(repository, digest))
    return mediaType === undefined ? undefined : { digest, mediaType, bytes: await readFile(at.content(digest)) }
  }
  const digestBehind = async (repository: string, reference: string) =>
    reference.includes(':') ? reference : textOf(at.tag(repository, reference))

  return {
    disk,
    blob,
    hasManifest,
    adoptBlob: async (repository, digest, draft) => {
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
      const digest = await digestBehind(repository, reference)
      return digest === undefined ? undefined : byDigest(repository, digest)
    },
    addManifest: async (repository, mediaType, bytes, subject) => {
      const digest = digestOf(bytes)
      await disk.write(at.content(digest), bytes)
      if (subject !== undefined) await disk.write(join(at.referrers(repository, subject), hexOf(digest)), '')
      // Last, because this is what makes it known.
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
