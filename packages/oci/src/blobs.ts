import { headerOf, isRedirect } from './response.ts'
import { digestOf } from './digest.ts'
import { RegistryError } from './error.ts'
import { scopeOf } from './names.ts'
import { isConfidential, linkTo } from './origin.ts'
import type { TransportAnswer } from './transport.ts'
import type { Descriptor } from './types.ts'
import type { Call, RegistryConnection } from './connection.ts'

const redirects = [301, 302, 303, 307, 308]
const mostHops = 3
const smallestLimit = 64 * 1024

const whatOf = (repository: string, digest: string): string => `blob ${digest} of ${repository}`
const blobAt = (wire: RegistryConnection, repository: string, digest: string): URL =>
  wire.at(`${repository}/blobs/${digest}`)

/** Downloads a blob and verifies its digest. One request, plus one for each redirect to the registry's blob storage. */
export async function fetchBlob(
  wire: RegistryConnection,
  repository: string,
  { digest, size }: Pick<Descriptor, 'digest' | 'size'>,
  maxBytes: number,
): Promise<Buffer> {
  const what = whatOf(repository, digest)
  if (size > maxBytes) {
    throw new RegistryError(
      'too_large',
      `The ${what} has ${size} bytes, and ${maxBytes} are the limit. Make it smaller.`,
    )
  }
  const call = { what, url: blobAt(wire, repository, digest), scopes: [scopeOf(repository, 'pull')], blobBytes: size }
  const limits = { statuses: [200, ...redirects], maxBytes: Math.max(size, smallestLimit) }
  const { body, isCutShort } = await download(wire, { ...call, ...limits, method: 'GET' })
  if (!isCutShort && body.length === size && digestOf(body) === digest) return body
  throw new RegistryError('invalid', `Registry ${wire.registry} has other content as ${what}. Push it again.`)
}

/** Follows redirects manually: credentials go only to the registry, and never after a redirect to another host. */
async function download(wire: RegistryConnection, call: Call): Promise<TransportAnswer> {
  let answer = await wire.send(call)
  let { url } = call
  let isHome = true
  for (let hops = 0; isRedirect(answer); hops += 1) {
    const next = linkTo(headerOf(answer, 'location'), url)
    const isFollowed = next !== undefined && hops < mostHops && isConfidential(next, wire.origin)
    if (!isFollowed) {
      const message = `Registry ${wire.registry} redirects ${call.what} to no address by https, or too often.`
      throw new RegistryError('refused', `${message} Check how it stores its blobs.`)
    }
    url = next
    isHome &&= wire.isOwn(url)
    answer = await (isHome ? wire.send : wire.sendBare)({ ...call, url })
  }
  return answer
}

/** Checks whether a registry has a blob. One request; a redirect means that the blob exists. */
export async function isBlobThere(
  wire: RegistryConnection,
  repository: string,
  digest: string,
  actions: 'pull' | 'pull,push' = 'pull',
): Promise<boolean> {
  const call = { what: whatOf(repository, digest), url: blobAt(wire, repository, digest) }
  const statuses = [200, 404, ...redirects]
  const answer = await wire.send({ ...call, method: 'HEAD', scopes: [scopeOf(repository, actions)], statuses })
  return answer.status !== 404
}

/** Uploads a blob. One request if the registry has it, two if the registry mounts it, otherwise three. */
export async function sendBlob(
  wire: RegistryConnection,
  repository: string,
  bytes: Uint8Array,
  mountFrom?: string,
): Promise<Pick<Descriptor, 'digest' | 'size'>> {
  const digest = digestOf(bytes)
  const sent = { digest, size: bytes.length }
  if (await isBlobThere(wire, repository, digest, 'pull,push')) return sent
  const place = await openUpload(wire, repository, digest, mountFrom)
  if (place === undefined) return sent
  place.searchParams.set('digest', digest)
  const call = { what: whatOf(repository, digest), url: place, scopes: [scopeOf(repository, 'pull,push')] }
  const headers = { 'content-type': 'application/octet-stream' }
  const content = { headers, body: bytes, blobBytes: bytes.length }
  const answer = await wire.send({ ...call, ...content, method: 'PUT', statuses: [201] })
  const told = headerOf(answer, 'docker-content-digest')
  if (told === undefined || told === digest) return sent
  const message = `Registry ${wire.registry} took ${call.what} for another. Push it again.`
  throw new RegistryError('invalid', message)
}

/** Returns the upload URL, or undefined if the registry mounted the blob from another repository. */
async function openUpload(
  wire: RegistryConnection,
  repository: string,
  digest: string,
  mountFrom: string | undefined,
): Promise<URL | undefined> {
  const url = wire.at(`${repository}/blobs/uploads/`)
  const scopes = [scopeOf(repository, 'pull,push')]
  if (mountFrom !== undefined) {
    url.searchParams.set('mount', digest)
    url.searchParams.set('from', mountFrom)
    scopes.push(scopeOf(mountFrom, 'pull'))
  }
  const call = { what: `an upload to ${repository}`, method: 'POST', url, scopes } as const
  const answer = await wire.send({ ...call, statuses: mountFrom === undefined ? [202] : [201, 202] })
  if (answer.status === 201) return undefined
  const place = linkTo(headerOf(answer, 'location'), url)
  if (place !== undefined && wire.isOwn(place)) return place
  throw new RegistryError('refused', `Registry ${wire.registry} wants uploads at another host. Nothing is sent there.`)
}
