import { headerOf, isRedirect } from './response.ts'
import { digestOf } from './digest.ts'
import { RegistryError } from './error.ts'
import { scopeOf } from './names.ts'
import { isConfidential, resolveLink } from './origin.ts'
import type { TransportResponse } from './transport.ts'
import type { Descriptor } from './types.ts'
import type { Call, RegistryConnection, RepositoryConnection } from './connection.ts'

const redirectStatuses = [301, 302, 303, 307, 308]
const maxRedirects = 3
const minLimitBytes = 64 * 1024

const callOf = (target: RepositoryConnection, digest: string, actions: 'pull' | 'pull,push') => ({
  description: `blob ${digest} of ${target.repository}`,
  url: target.urlOf(`${target.repository}/blobs/${digest}`),
  scopes: [scopeOf(target.repository, actions)],
})

/** Downloads a blob, follows redirects, and verifies the size and the digest. */
export async function fetchBlob(
  target: RepositoryConnection,
  { digest, size }: Pick<Descriptor, 'digest' | 'size'>,
  maxBytes: number,
): Promise<Buffer> {
  const call = callOf(target, digest, 'pull')
  const { description } = call
  if (size > maxBytes) {
    throw new RegistryError(
      'too_large',
      `The ${description} has ${size} bytes; the limit is ${maxBytes}. Make it smaller.`,
    )
  }
  const limits = { statuses: [200, ...redirectStatuses], maxBytes: Math.max(size, minLimitBytes), blobBytes: size }
  const { body, isCutShort } = await download(target, { ...call, ...limits, method: 'GET' })
  if (!isCutShort && body.length === size && digestOf(body) === digest) return body
  const message = `Registry ${target.registry} returned other content for ${description}. Push it again.`
  throw new RegistryError('invalid', message)
}

/** Follows redirects manually: credentials go only to the registry, and never after a redirect to another host. */
async function download(connection: RegistryConnection, call: Call): Promise<TransportResponse> {
  let response = await connection.send(call)
  let { url } = call
  let isSameRegistry = true
  for (let redirectCount = 0; isRedirect(response); redirectCount += 1) {
    const next = resolveLink(headerOf(response, 'location'), url)
    const isAllowed = next !== undefined && redirectCount < maxRedirects && isConfidential(next, connection.origin)
    if (!isAllowed) {
      const message = `Registry ${connection.registry} redirects ${call.description} to an invalid address, or too often.`
      throw new RegistryError('refused', `${message} Check how it stores its blobs.`)
    }
    url = next
    isSameRegistry &&= connection.isOwn(url)
    response = await (isSameRegistry ? connection.send : connection.sendWithoutCredentials)({ ...call, url })
  }
  return response
}

/** A redirect also means that the blob exists. */
export async function hasBlob(
  target: RepositoryConnection,
  digest: string,
  actions: 'pull' | 'pull,push' = 'pull',
): Promise<boolean> {
  const call = callOf(target, digest, actions)
  const response = await target.send({ ...call, method: 'HEAD', statuses: [200, 404, ...redirectStatuses] })
  return response.status !== 404
}

/** Uploads nothing if the registry has the blob or mounts it from the repository `mountFrom`. */
export async function uploadBlob(
  target: RepositoryConnection,
  bytes: Uint8Array,
  mountFrom?: string,
): Promise<Pick<Descriptor, 'digest' | 'size'>> {
  const digest = digestOf(bytes)
  const descriptor = { digest, size: bytes.length }
  if (await hasBlob(target, digest, 'pull,push')) return descriptor
  const location = await openUpload(target, digest, mountFrom)
  if (location === undefined) return descriptor
  location.searchParams.set('digest', digest)
  const call = { ...callOf(target, digest, 'pull,push'), url: location }
  const headers = { 'content-type': 'application/octet-stream' }
  const content = { headers, body: bytes, blobBytes: bytes.length }
  const response = await target.send({ ...call, ...content, method: 'PUT', statuses: [201] })
  const reportedDigest = headerOf(response, 'docker-content-digest')
  if (reportedDigest === undefined || reportedDigest === digest) return descriptor
  const message = `Registry ${target.registry} stored ${call.description} under another digest. Push it again.`
  throw new RegistryError('invalid', message)
}

/** Returns the URL to upload to; undefined if the registry mounted the blob from another repository. */
async function openUpload(
  target: RepositoryConnection,
  digest: string,
  mountFrom: string | undefined,
): Promise<URL | undefined> {
  const url = target.urlOf(`${target.repository}/blobs/uploads/`)
  const scopes = [scopeOf(target.repository, 'pull,push')]
  if (mountFrom !== undefined) {
    url.searchParams.set('mount', digest)
    url.searchParams.set('from', mountFrom)
    scopes.push(scopeOf(mountFrom, 'pull'))
  }
  const call = { description: `an upload to ${target.repository}`, method: 'POST', url, scopes } as const
  const response = await target.send({ ...call, statuses: mountFrom === undefined ? [202] : [201, 202] })
  if (response.status === 201) return undefined
  const location = resolveLink(headerOf(response, 'location'), url)
  if (location !== undefined && target.isOwn(location)) return location
  const message = `Registry ${target.registry} requests uploads at another host. Nothing was sent.`
  throw new RegistryError('refused', message)
}
