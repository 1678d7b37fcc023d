import { fetchBlob, hasBlob, uploadBlob } from './blobs.ts'
import { listRepositories, listTags } from './paging.ts'
import { findManifest, removeManifest, resolveReference, uploadManifest } from './manifests.ts'
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
  /** Called each time the registry requires authentication. */
  credentials?: () => Promise<Credentials | undefined>
  /** Hosts besides the registry's own that may receive the credentials. Default: `auth.docker.io`. */
  trustedRealms?: readonly string[]
  /** Timeout of a request, 10 s by default. Uploads and blob transfers get additional time according to their size. */
  timeoutMs?: number
}

/** A manifest or an index as received. The digest is computed over `bytes`. */
export interface FoundManifest {
  content: Manifest | Index
  bytes: Buffer
  descriptor: Descriptor
}

/**
 * Client of one registry (OCI distribution specification 1.1). Verifies the digest of each manifest and blob that it
 * downloads. Throws only `RegistryError`. `repository` is the name of a repository, `reference` a tag or a digest.
 */
export interface RegistryClient {
  /** `host[:port]` */
  readonly registry: string
  /** Lists all repositories. Fails if the registry does not implement `_catalog`, as many do not. */
  repositories(): AsyncIterable<string>
  tags(repository: string): AsyncIterable<string>
  /** Returns the descriptor of a reference, without its content; undefined if the reference does not exist. */
  resolve(repository: string, reference: string): Promise<Descriptor | undefined>
  /** Downloads a manifest or an index of at most 4 MiB. Returns undefined if the reference does not exist. */
  manifest(repository: string, reference: string): Promise<FoundManifest | undefined>
  /** Downloads a whole blob of at most `maxBytes`, 8 MiB by default. */
  blob(repository: string, descriptor: Pick<Descriptor, 'digest' | 'size'>, maxBytes?: number): Promise<Buffer>
  hasBlob(repository: string, digest: string): Promise<boolean>
  /** Uploads a blob unless the registry has it. `mountFrom`: a repository of the same registry that may have it. */
  putBlob(
    repository: string,
    bytes: Uint8Array,
    options?: { mountFrom?: string },
  ): Promise<Pick<Descriptor, 'digest' | 'size'>>
  putManifest(repository: string, reference: string, bytes: Uint8Array, mediaType: string): Promise<Descriptor>
  /** Lists the referrers of a digest, such as signatures. Without the referrers API, reads the referrers tag. */
  referrers(repository: string, digest: string, artifactType?: string): Promise<Descriptor[]>
  /** Uploads a manifest with a subject, so that `referrers` of the subject lists it. */
  putReferrer(repository: string, manifest: Manifest & { subject: Descriptor }): Promise<Descriptor>
  /** Deletes a manifest; succeeds if it does not exist. Many registries delete only by digest, or not at all. */
  remove(repository: string, reference: string): Promise<void>
}

const defaultMaxBlobBytes = 8 * 1024 * 1024

/** Creates a client; sends no request yet. Throws `RegistryError` if the registry name is invalid. */
export function registryClient(registry: string, options: ClientOptions): RegistryClient {
  const connection = connectRegistry(registry, options)
  const targetOf = (repository: string) => ({ ...connection, repository: checkRepository(repository) })
  return {
    registry,
    repositories: () => listRepositories(connection),
    tags: (repository) => listTags(targetOf(repository)),
    resolve: async (repository, reference) => resolveReference(targetOf(repository), checkReference(reference)),
    manifest: async (repository, reference) => findManifest(targetOf(repository), checkReference(reference)),
    blob: async (repository, { digest, size }, maxBytes = defaultMaxBlobBytes) =>
      fetchBlob(targetOf(repository), { digest: checkDigest(digest), size }, maxBytes),
    hasBlob: async (repository, digest) => hasBlob(targetOf(repository), checkDigest(digest)),
    putBlob: async (repository, bytes, { mountFrom } = {}) =>
      uploadBlob(targetOf(repository), bytes, mountFrom && checkRepository(mountFrom)),
    putManifest: async (repository, reference, bytes, mediaType) =>
      (await uploadManifest(targetOf(repository), checkReference(reference), bytes, mediaType)).descriptor,
    referrers: async (repository, digest, artifactType) =>
      listReferrers(targetOf(repository), checkDigest(digest), artifactType),
    putReferrer: async (repository, manifest) => addReferrer(targetOf(repository), manifest),
    remove: async (repository, reference) => removeManifest(targetOf(repository), checkReference(reference)),
  }
}
