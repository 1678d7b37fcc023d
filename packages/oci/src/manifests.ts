import { headerOf } from './response.ts'
import type { FoundManifest } from './client.ts'
import { digestOf, isDigest } from './digest.ts'
import { IndexDocument, ManifestDocument, parseDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { scopeOf } from './names.ts'
import type { TransportResponse } from './transport.ts'
import { type Descriptor, mediaTypes } from './types.ts'
import type { RegistryConnection } from './connection.ts'

const maxManifestBytes = 4 * 1024 * 1024

const indexTypes: readonly string[] = [mediaTypes.index, mediaTypes.dockerIndex]
const manifestTypes: readonly string[] = [mediaTypes.manifest, mediaTypes.dockerManifest]
const accept = [...manifestTypes, ...indexTypes].join(', ')

type Actions = Parameters<typeof scopeOf>[1]
const callOf = (connection: RegistryConnection, repository: string, reference: string, actions: Actions) => ({
  what: `${repository} ${reference}`,
  url: connection.at(`${repository}/manifests/${reference}`),
  scopes: [scopeOf(repository, actions)],
})
const pullCall = (...manifest: [RegistryConnection, repository: string, reference: string]) => ({
  ...callOf(...manifest, 'pull'),
  headers: { accept },
})

/** Resolves a reference. One request, or two if the response headers lack the digest or the size. */
export async function resolveReference(
  connection: RegistryConnection,
  repository: string,
  reference: string,
): Promise<Descriptor | undefined> {
  const call = pullCall(connection, repository, reference)
  const response = await connection.send({ ...call, method: 'HEAD', statuses: [200, 404] })
  if (response.status === 404) return undefined
  const digest = headerOf(response, 'docker-content-digest')
  const size = headerOf(response, 'content-length') ?? ''
  if (digest === undefined || !/^\d{1,15}$/.test(size))
    return (await findManifest(connection, repository, reference))?.descriptor
  const mediaType = typeOf(connection, call.what, response)
  checkDigestMatches(connection, call.what, reference, digest)
  if (Number(size) > maxManifestBytes) throw tooLarge(connection, call.what)
  return { mediaType, digest, size: Number(size) }
}

/** Downloads a manifest or an index. One request. */
export async function findManifest(
  connection: RegistryConnection,
  repository: string,
  reference: string,
): Promise<FoundManifest | undefined> {
  const call = pullCall(connection, repository, reference)
  const response = await connection.send({ ...call, method: 'GET', statuses: [200, 404], maxBytes: maxManifestBytes })
  if (response.status === 404) return undefined
  if (response.isCutShort) throw tooLarge(connection, call.what)
  const mediaType = typeOf(connection, call.what, response)
  const { body: bytes } = response
  const digest = digestOf(bytes)
  checkDigestMatches(connection, call.what, reference, digest)
  checkReportedDigest(connection, call.what, response, digest)
  const schema = indexTypes.includes(mediaType) ? IndexDocument : ManifestDocument
  const content = parseDocument(schema, response, `The response of registry ${connection.registry} for ${call.what}`)
  if ((content.mediaType ?? mediaType) !== mediaType)
    throw invalidResponse(connection, call.what, 'reports two media types')
  return { content: { ...content, mediaType }, bytes, descriptor: { mediaType, digest, size: bytes.length } }
}

/** Uploads a manifest. One request. `isReferrerListed`: the registry lists it as a referrer of its subject. */
export async function uploadManifest(
  connection: RegistryConnection,
  repository: string,
  reference: string,
  bytes: Uint8Array,
  mediaType: string,
): Promise<{ descriptor: Descriptor; isReferrerListed: boolean }> {
  const call = callOf(connection, repository, reference, 'pull,push')
  const digest = digestOf(bytes)
  if (bytes.length > maxManifestBytes) throw tooLarge(connection, call.what)
  if (isDigest(reference) && reference !== digest) {
    const message = `The manifest for ${call.what} has the digest ${digest}. Push it under that digest.`
    throw new RegistryError('invalid', message)
  }
  const content = { headers: { 'content-type': mediaType }, body: bytes, blobBytes: bytes.length }
  const response = await connection.send({ ...call, ...content, method: 'PUT', statuses: [201] })
  checkReportedDigest(connection, call.what, response, digest)
  const isReferrerListed = headerOf(response, 'oci-subject') !== undefined
  return { descriptor: { mediaType, digest, size: bytes.length }, isReferrerListed }
}

/** Deletes a manifest; succeeds if it does not exist. One request. */
export async function removeManifest(
  connection: RegistryConnection,
  repository: string,
  reference: string,
): Promise<void> {
  const call = callOf(connection, repository, reference, 'delete')
  await connection.send({ ...call, method: 'DELETE', statuses: [200, 202, 404] })
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
