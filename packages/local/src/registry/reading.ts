import { mediaTypes } from '@platform/oci/types'
import * as z from 'zod'
import { fileResponse, jsonResponse, type RegistryResponse } from './responses.ts'
import type { Target } from './names.ts'
import { pageOf } from './paging.ts'
import { RegistryServerError } from './error.ts'
import type { StoredManifest, Store } from './store.ts'

export interface ReadRequest {
  target: Target
  path: string
  query: URLSearchParams
  range: string | undefined
}

/** Responds to GET and HEAD, except for the state of an upload. */
export async function respondToRead(
  store: Store,
  { target, path, query, range }: ReadRequest,
): Promise<RegistryResponse> {
  switch (target.kind) {
    case 'base':
      return jsonResponse(200, {})
    case 'catalog': {
      const { items, linkHeaders } = pageOf(await store.repositories(), path, query)
      return jsonResponse(200, { repositories: items }, linkHeaders)
    }
    case 'tags':
      return tagsOf(store, target.repository, path, query)
    case 'manifest':
      return manifestOf(store, target.repository, target.reference)
    case 'blob':
      return blobOf(store, target.repository, target.digest, range)
    case 'referrers':
      return referrersOf(store, target.repository, target.digest, query.get('artifactType'))
    default:
      throw new RegistryServerError('UNSUPPORTED', 'The operation is not supported.')
  }
}

async function tagsOf(store: Store, name: string, path: string, query: URLSearchParams): Promise<RegistryResponse> {
  const tags = await store.tags(name)
  if (tags === undefined) throw new RegistryServerError('NAME_UNKNOWN', 'The repository does not exist.')
  const { items, linkHeaders } = pageOf(tags, path, query)
  return jsonResponse(200, { name, tags: items }, linkHeaders)
}

async function manifestOf(store: Store, repository: string, reference: string): Promise<RegistryResponse> {
  const manifest = await store.manifest(repository, reference)
  if (manifest === undefined) throw new RegistryServerError('MANIFEST_UNKNOWN', 'The manifest does not exist.')
  const { digest, mediaType, bytes } = manifest
  return {
    status: 200,
    headers: { 'content-type': mediaType, 'docker-content-digest': digest, etag: `"${digest}"` },
    body: bytes,
  }
}

async function blobOf(store: Store, repository: string, digest: string, range: string | undefined) {
  const blob = await store.blob(repository, digest)
  if (blob === undefined) throw new RegistryServerError('BLOB_UNKNOWN', 'The blob does not exist.')
  const headers = { 'content-type': 'application/octet-stream', 'accept-ranges': 'bytes', etag: `"${digest}"` }
  return fileResponse(blob.path, blob.size, range, { ...headers, 'docker-content-digest': digest })
}

const Referrer = z.object({
  artifactType: z.string().optional(),
  config: z.object({ mediaType: z.string() }).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
})

/** A manifest that an older version accepted may have an invalid member; all optional members are then omitted. */
function descriptorOf({ mediaType, digest, bytes }: StoredManifest) {
  const { artifactType, config, annotations } = Referrer.safeParse(JSON.parse(bytes.toString('utf8'))).data ?? {}
  const type = artifactType ?? config?.mediaType
  return {
    mediaType,
    digest,
    size: bytes.length,
    ...(type !== undefined && { artifactType: type }),
    ...(annotations !== undefined && { annotations }),
  }
}

async function referrersOf(store: Store, repository: string, subject: string, type: string | null) {
  const descriptors = (await store.referrers(repository, subject)).map(descriptorOf)
  const manifests = type === null ? descriptors : descriptors.filter(({ artifactType }) => artifactType === type)
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests }
  return jsonResponse(200, index, {
    'content-type': mediaTypes.index,
    ...(type !== null && { 'oci-filters-applied': 'artifactType' }),
  })
}
