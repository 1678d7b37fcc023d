import type { IncomingMessage } from 'node:http'
import { digestOf, isDigest } from '@platform/oci/digest'
import type { RegistryResponse } from './responses.ts'
import { checkManifest, maxManifestBytes } from './manifest-body.ts'
import { isRepository, type Target } from './names.ts'
import { RegistryServerError } from './error.ts'
import type { Store } from './store.ts'
import type { Upload, Uploads } from './uploads.ts'

export interface WriteRequest {
  target: Target
  query: URLSearchParams
  request: IncomingMessage
}

/** Handles requests that change something, and GET of an upload's state. */
export function respondToWrite(store: Store, uploads: Uploads, { target, query, request }: WriteRequest) {
  const { method } = request
  if (target.kind === 'uploads' && method === 'POST')
    return beginUpload(store, uploads, target.repository, query, request)
  if (target.kind === 'upload') return continueUpload(store, uploads, target, query, request)
  if (target.kind === 'manifest' && method === 'PUT') return putManifest(store, target, request)
  if (target.kind === 'manifest' && method === 'DELETE') return removeManifest(store, target)
  if (target.kind === 'blob' && method === 'DELETE') return removeBlob(store, target)
  throw new RegistryServerError('UNSUPPORTED', 'The operation is not supported.')
}

const createdResponse = (repository: string, kind: 'blobs' | 'manifests', digest: string): RegistryResponse => ({
  status: 201,
  headers: { location: `/v2/${repository}/${kind}/${digest}`, 'docker-content-digest': digest },
})

const progressResponse = (status: number, { repository, id, sizeBytes }: Upload): RegistryResponse => ({
  status,
  headers: {
    location: `/v2/${repository}/blobs/uploads/${id}`,
    'docker-upload-uuid': id,
    range: `0-${Math.max(0, sizeBytes - 1)}`,
  },
})

async function beginUpload(
  store: Store,
  uploads: Uploads,
  repository: string,
  query: URLSearchParams,
  request: IncomingMessage,
): Promise<RegistryResponse> {
  const [mount, from, digest] = ['mount', 'from', 'digest'].map((name) => query.get(name) ?? '')
  if (mount && from && isDigest(mount) && isRepository(from) && (await store.mountBlob(repository, mount, from))) {
    return createdResponse(repository, 'blobs', mount)
  }
  if (digest) requireDigest(digest)
  const upload = await uploads.beginUpload(repository)
  await uploads.append(upload, request)
  return digest ? finishUpload(store, uploads, upload, digest) : progressResponse(202, upload)
}

async function continueUpload(
  store: Store,
  uploads: Uploads,
  { repository, uploadId }: { repository: string; uploadId: string },
  query: URLSearchParams,
  request: IncomingMessage,
): Promise<RegistryResponse> {
  const upload = uploads.find(repository, uploadId)
  const { method } = request
  if (method === 'GET') return progressResponse(204, upload)
  if (method === 'DELETE') {
    await uploads.cancel(upload)
    return { status: 204 }
  }
  if (method !== 'PATCH' && method !== 'PUT')
    throw new RegistryServerError('UNSUPPORTED', 'The operation is not supported.')
  const digest = query.get('digest') ?? ''
  if (method === 'PUT') requireDigest(digest)
  requireSequential(upload, request.headers['content-range'])
  await uploads.append(upload, request)
  return method === 'PUT' ? finishUpload(store, uploads, upload, digest) : progressResponse(202, upload)
}

async function finishUpload(store: Store, uploads: Uploads, upload: Upload, digest: string): Promise<RegistryResponse> {
  await uploads.finish(upload, digest)
  await store.storeBlob(upload.repository, digest, upload.draft)
  return createdResponse(upload.repository, 'blobs', digest)
}

function requireDigest(digest: string): void {
  if (!isDigest(digest))
    throw new RegistryServerError('DIGEST_INVALID', 'digest must be sha256: and 64 hexadecimal digits.')
}

/** Each chunk must begin where the previous one ended. */
function requireSequential(upload: Upload, contentRange: string | undefined): void {
  const start = /^(?:bytes[ =])?(\d{1,15})-\d{1,15}(?:\/.*)?$/.exec(contentRange ?? '')?.[1]
  const isInOrder = contentRange === undefined || (start !== undefined && Number(start) === upload.sizeBytes)
  if (isInOrder) return
  throw new RegistryServerError('RANGE_INVALID', 'The chunk does not begin where the last one ended.', {
    ...progressResponse(416, upload).headers,
  })
}

async function putManifest(
  store: Store,
  { repository, reference }: { repository: string; reference: string },
  request: IncomingMessage,
): Promise<RegistryResponse> {
  const bytes = await readManifest(request)
  const digest = digestOf(bytes)
  if (isDigest(reference) && reference !== digest) {
    throw new RegistryServerError('DIGEST_INVALID', `The manifest has the digest ${digest}.`)
  }
  const mediaType = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim() ?? ''
  const { subject } = await checkManifest(store, repository, mediaType, bytes)
  await store.addManifest(repository, mediaType, bytes, subject)
  if (!isDigest(reference)) await store.setTag(repository, reference, digest)
  const response = createdResponse(repository, 'manifests', digest)
  return { ...response, headers: { ...response.headers, ...(subject !== undefined && { 'oci-subject': subject }) } }
}

async function readManifest(request: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > maxManifestBytes) throw new RegistryServerError('SIZE_INVALID', 'A manifest must have at most 4 MiB.')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function removeManifest(
  store: Store,
  target: { repository: string; reference: string },
): Promise<RegistryResponse> {
  if (await store.removeManifest(target.repository, target.reference)) return { status: 202 }
  throw new RegistryServerError('MANIFEST_UNKNOWN', 'The manifest does not exist.')
}

async function removeBlob(store: Store, target: { repository: string; digest: string }): Promise<RegistryResponse> {
  if (await store.removeBlob(target.repository, target.digest)) return { status: 202 }
  throw new RegistryServerError('BLOB_UNKNOWN', 'The blob does not exist.')
}
