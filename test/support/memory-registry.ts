import type { RegistryClient } from '@platform/oci/client'
import { digestOf } from '@platform/oci/digest'
import { RegistryError } from '@platform/oci/error'
import type { Descriptor, Index, Manifest } from '@platform/oci/types'

/** Tests may change the stored content. Keys are `repository digest` and `repository tag`. */
export interface MemoryRegistry extends RegistryClient {
  blobs: Map<string, Buffer>
  manifests: Map<string, { bytes: Buffer; mediaType: string }>
  digestByTag: Map<string, string>
}

const notFound = (content: string) => new RegistryError('not_found', `There is no ${content}.`)

export function memoryRegistry(registry = 'registry.test'): MemoryRegistry {
  const blobs: MemoryRegistry['blobs'] = new Map()
  const manifests: MemoryRegistry['manifests'] = new Map()
  const digestByTag: MemoryRegistry['digestByTag'] = new Map()
  const find = (repository: string, reference: string) => {
    const digest = digestByTag.get(`${repository} ${reference}`) ?? reference
    const found = manifests.get(`${repository} ${digest}`)
    if (found === undefined) return undefined
    const content = JSON.parse(found.bytes.toString()) as Manifest | Index
    const descriptor = { mediaType: found.mediaType, digest, size: found.bytes.length }
    return { content, bytes: found.bytes, descriptor }
  }
  const put = (repository: string, reference: string, bytes: Uint8Array, mediaType: string): Descriptor => {
    const digest = digestOf(bytes)
    manifests.set(`${repository} ${digest}`, { bytes: Buffer.from(bytes), mediaType })
    if (!reference.includes(':')) digestByTag.set(`${repository} ${reference}`, digest)
    return { mediaType, digest, size: bytes.length }
  }
  return {
    registry,
    blobs,
    manifests,
    digestByTag,
    async *repositories() {
      yield* new Set([...manifests.keys()].map((key) => key.split(' ')[0] ?? ''))
    },
    async *tags(repository) {
      for (const key of digestByTag.keys()) if (key.startsWith(`${repository} `)) yield key.slice(repository.length + 1)
    },
    resolve: async (repository, reference) => find(repository, reference)?.descriptor,
    manifest: async (repository, reference) => find(repository, reference),
    async blob(repository, { digest, size }, maxBytes = 8 * 2 ** 20) {
      const found = blobs.get(`${repository} ${digest}`)
      if (found === undefined) throw notFound(digest)
      if (size > maxBytes) throw new RegistryError('too_large', `${digest} is too large.`)
      if (digestOf(found) !== digest || found.length !== size)
        throw new RegistryError('invalid', `The content of ${digest} has another digest.`)
      return found
    },
    hasBlob: async (repository, digest) => blobs.has(`${repository} ${digest}`),
    async putBlob(repository, bytes) {
      const digest = digestOf(bytes)
      blobs.set(`${repository} ${digest}`, Buffer.from(bytes))
      return { digest, size: bytes.length }
    },
    putManifest: async (repository, reference, bytes, mediaType) => put(repository, reference, bytes, mediaType),
    async referrers(repository, digest, artifactType) {
      const keysOfRepository = [...manifests.keys()].filter((key) => key.startsWith(`${repository} `))
      const found = keysOfRepository.flatMap((key) => find(repository, key.slice(repository.length + 1)) ?? [])
      return found.flatMap(({ content, descriptor }) => {
        if (!('subject' in content) || content.subject?.digest !== digest) return []
        if (artifactType !== undefined && content.artifactType !== artifactType) return []
        return [{ ...descriptor, ...(content.artifactType !== undefined && { artifactType: content.artifactType }) }]
      })
    },
    putReferrer: async (repository, manifest) => {
      const bytes = Buffer.from(JSON.stringify(manifest))
      return put(repository, digestOf(bytes), bytes, manifest.mediaType)
    },
    async remove(repository, reference) {
      digestByTag.delete(`${repository} ${reference}`)
      manifests.delete(`${repository} ${reference}`)
    },
  }
}
