import { headerOf } from './response.ts'
import type { FoundManifest } from './client.ts'
import { digestOf, isDigest } from './digest.ts'
import { IndexDocument, ManifestDocument, parseDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { scopeOf } from './names.ts'
import type { TransportResponse } from './transport.ts'
import { type Descriptor, mediaTypes } from './types.ts'
import type { RegistryConnection, RepositoryConnection } from './connection.ts'

const maxManifestBytes = 4 * 1024 * 1024

const indexTypes: readonly string[] = [mediaTypes.index, mediaTypes.dockerIndex]
const manifestTypes: readonly string[] = [mediaTypes.manifest, mediaTypes.dockerManifest]
const accept = [...manifestTypes, ...indexTypes].join(', ')

type Actions = Parameters<typeof scopeOf>[1]
const callOf = (target: RepositoryConnection, reference: string, actions: Actions) => ({
  what: `${target.repository} ${reference}`,
  url: target.at(`${target.repository}/manifests/${reference}`),
  scopes: [scopeOf(target.repository, actions)],
})
const pullCall = (target: RepositoryConnection, reference: string) => ({
  ...callOf(target, reference, 'pull'),
  headers: { accept },
})

/** Resolves a reference. One request, or two if the response headers lack the digest or the size. */
export async function resolveReference(
  target: RepositoryConnection,
  reference: string,
): Promise<Descriptor | undefined> {
  const call = pullCall(target, reference)
  const response = await target.send({ ...call, method: 'HEAD', statuses: [200, 404] })
  if (response.status === 404) return undefined
  const digest = headerOf(response, 'docker-content-digest')
  const size = headerOf(response, 'content-length') ?? ''
  if (digest === undefined || !/^\d{1,15}$/.test(size)) return (await findManifest(target, reference))?.descriptor
  const mediaType = typeOf(target, call.what, response)
  checkDigestMatches(target, call.what, reference, digest)
  if (Number(size) > maxManifestBytes) throw tooLarge(target, call.what)
  return { mediaType, digest, size: Number(size) }
}

/** Downloads a manifest or an index. One request. */
export async function findManifest(
  target: RepositoryConnection,
  reference: string,
): Promise<FoundManifest | undefined> {
  const call = pullCall(target, reference)
  const response = await target.send({ ...call, method: 'GET', statuses: [200, 404], maxBytes: maxManifestBytes })
  if (response.status === 404) return undefined
  if (response.isCutShort) throw tooLarge(target, call.what)
  const mediaType = typeOf(target, call.what, response)
  const { body: bytes } = response
  const digest = digestOf(bytes)
  checkDigestMatches(target, call.what, reference, digest)
  checkReportedDigest(target, call.what, response, digest)
  const schema = indexTypes.includes(mediaType) ? IndexDocument : ManifestDocument
  const content = parseDocument(schema, response, `The response of registry ${target.registry} for ${call.what}`)
  if ((content.mediaType ?? mediaType) !== mediaType)
    throw invalidResponse(target, call.what, 'reports two media types')
  return { content: { ...content, mediaType }, bytes, descriptor: { mediaType, digest, size: bytes.length } }
}

/** Uploads a manifest. One request. `isReferrerListed`: the registry lists it as a referrer of its subject. */
export async function uploadManifest(
  target: RepositoryConnection,
  reference: string,
  bytes: Uint8Array,
  mediaType: string,
): Promise<{ descriptor: Descriptor; isReferrerListed: boolean }> {
  const call = callOf(target, reference, 'pull,push')
  const digest = digestOf(bytes)
  if (bytes.length > maxManifestBytes) throw tooLarge(target, call.what)
  if (isDigest(reference) && reference !== digest) {
    const message = `The manifest for ${call.what} has the digest ${digest}. Push it under that digest.`
    throw new RegistryError('invalid', message)
  }
  const content = { headers: { 'content-type': mediaType }, body: bytes, blobBytes: bytes.length }
  const response = await target.send({ ...call, ...content, method: 'PUT', statuses: [201] })
  checkReportedDigest(target, call.what, response, digest)
  const isReferrerListed = headerOf(response, 'oci-subject') !== undefined
  return { descriptor: { mediaType, digest, size: bytes.length }, isReferrerListed }
}

/** Deletes a manifest; succeeds if it does not exist. One request. */
export async function removeManifest(target: RepositoryConnection, reference: string): Promise<void> {
  const call = callOf(target, reference, 'delete')
  await target.send({ ...call, method: 'DELETE', statuses: [200, 202, 404] })
}

/** Returns the media type of a response. Throws `RegistryError` if the request did not accept it. */
function typeOf(connection: RegistryConnection, what: string, response: TransportResponse): string {
  const mediaType = headerOf(response, 'content-type')?.split(';')[0]?.trim() ?? ''
  if (indexTypes.includes(mediaType) || manifestTypes.includes(mediaType)) return mediaType
  throw invalidResponse(connection, what, 'uses a media type that is neither OCI nor Docker version 2')
}

function checkDigestMatches(connection: RegistryConnection, what: string, reference: string, digest: string): void {
  if (!isDigest(digest)) throw invalidResponse(connection, what, 'reports no SHA-256 digest')
  if (isDigest(reference) && reference !== digest) throw invalidResponse(connection, what, 'returns other content')
}

/** Throws `RegistryError` if the registry reports another digest than the computed one. */
function checkReportedDigest(
  connection: RegistryConnection,
  what: string,
  response: TransportResponse,
  digest: string,
): void {
  const reported = headerOf(response, 'docker-content-digest')
  if (reported !== undefined && reported !== digest)
    throw invalidResponse(connection, what, 'reports a digest that does not match the content')
}

function invalidResponse({ registry }: RegistryConnection, what: string, reason: string): RegistryError {
  const message = `Registry ${registry} returned an invalid response for ${what}: it ${reason}.`
  return new RegistryError('invalid', `${message} Push it again, or use another.`)
}

function tooLarge({ registry }: RegistryConnection, what: string): RegistryError {
  const limit = `${maxManifestBytes >> 20} MiB`
  return new RegistryError('too_large', `${what} at registry ${registry} is larger than ${limit}. Make it smaller.`)
}
