import { fetchBlob, isBlobThere, sendBlob } from './blobs.ts'
import { listRepositories, listTags } from './lists.ts'
import { findManifest, removeManifest, resolveReference, sendManifest } from './manifests.ts'
import { checkDigest, checkReference, checkRepository } from './names.ts'
import { addReferrer, listReferrers } from './referrers.ts'
import type { Transport } from './transport.ts'
import type { Descriptor, Index, Manifest } from './types.ts'
import { connectRegistry } from './connection.ts'

export interface Credentials {
  username: string
  password: string
}

export interface ClientOptions {
  transport: Transport
  /** Asked for each time the registry wants to know who calls. */
  credentials?: () => Promise<Credentials | undefined>
  /** Hosts beside the registry's own that may be sent the credentials. Docker's own by default. */
  trustedRealms?: readonly string[]
  /** For one small request, 10 s by default. Blobs get more by their size. */
  timeoutMs?: number
}

/** A manifest or an index as it was found. `bytes` are what the digest is over. */
export interface FoundManifest {
  content: Manifest | Index
  bytes: Buffer
  descriptor: Descriptor
}

/**
 * One registry (OCI distribution specification 1.1). Every digest is computed anew from what came. All that goes wrong is a
 * `RegistryFailure`. A name is a repository's, a reference a tag or a digest.
 */
export interface RegistryClient {
  /** `host[:port]` */
  readonly registry: string
  /** All repositories, where the registry tells them (`_catalog`); many do not. */
  repositories(): AsyncIterable<string>
  tags(repository: string): AsyncIterable<string>
  /** What a reference stands for, without its content; undefined where there is nothing. */
  resolve(repository: string, reference: string): Promise<Descriptor | undefined>
  /** A manifest or an index of at most 4 MiB; undefined where there is none. */
  manifest(repository: string, reference: string): Promise<FoundManifest | undefined>
  /** A blob, whole: of at most `maxBytes`, 8 MiB by default. */
  blob(repository: string, descriptor: Pick<Descriptor, 'digest' | 'size'>, maxBytes?: number): Promise<Buffer>
  hasBlob(repository: string, digest: string): Promise<boolean>
  /** Sends a blob, unless it is there. `mountFrom`: a repository of the same registry that may have it. */
  putBlob(
    repository: string,
    bytes: Uint8Array,
    options?: { mountFrom?: string },
  ): Promise<Pick<Descriptor, 'digest' | 'size'>>
  putManifest(repository: string, reference: string, bytes: Uint8Array, mediaType: string): Promise<Descriptor>
  /** What refers to a digest: signatures, attestations. Where the registry has no such list, that of the clients' tag. */
  referrers(repository: string, digest: string, artifactType?: string): Promise<Descriptor[]>
  /** Sends a manifest with a subject, so that `referrers` of the subject names it. */
  putReferrer(repository: string, manifest: Manifest & { subject: Descriptor }): Promise<Descriptor>
  /** Removes a manifest; that it is not there is fine. Many registries take digests only, or nothing. */
  remove(repository: string, reference: string): Promise<void>
}

const smallBlobBytes = 8 * 1024 * 1024

/** Speaks to a registry; nothing is sent until something is asked. Throws `RegistryFailure` for a name that none can have. */
export function registryClient(registry: string, options: ClientOptions): RegistryClient {
  const wire = connectRegistry(registry, options)
  return {
    registry,
    repositories: () => listRepositories(wire),
    tags: (repository) => listTags(wire, checkRepository(repository)),
    resolve: async (repository, reference) =>
      resolveReference(wire, checkRepository(repository), checkReference(reference)),
    manifest: async (repository, reference) =>
      findManifest(wire, checkRepository(repository), checkReference(reference)),
    blob: async (repository, { digest, size }, maxBytes = smallBlobBytes) =>
      fetchBlob(wire, checkRepository(repository), { digest: checkDigest(digest), size }, maxBytes),
    hasBlob: async (repository, digest) => isBlobThere(wire, checkRepository(repository), checkDigest(digest)),
    putBlob: async (repository, bytes, { mountFrom } = {}) =>
      sendBlob(wire, checkRepository(repository), bytes, mountFrom && checkRepository(mountFrom)),
    putManifest: async (repository, reference, bytes, mediaType) =>
      (await sendManifest(wire, checkRepository(repository), checkReference(reference), bytes, mediaType)).descriptor,
    referrers: async (repository, digest, artifactType) =>
      listReferrers(wire, checkRepository(repository), checkDigest(digest), artifactType),
    putReferrer: async (repository, manifest) => addReferrer(wire, checkRepository(repository), manifest),
    remove: async (repository, reference) =>
      removeManifest(wire, checkRepository(repository), checkReference(reference)),
  }
}
