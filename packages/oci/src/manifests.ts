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
  description: `${target.repository} ${reference}`,
  url: target.urlOf(`${target.repository}/manifests/${reference}`),
  scopes: [scopeOf(target.repository, actions)],
})
const pullCall = (target: RepositoryConnection, reference: string) => ({
  ...callOf(target, reference, 'pull'),
  headers: { accept },
})

/** Downloads the manifest if the response headers lack the digest or the size. */
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
  const mediaType = mediaTypeOf(target, call.description, response)
  checkDigestMatches(target, call.description, reference, digest)
  if (Number(size) > maxManifestBytes) throw tooLargeError(target, call.description)
  return { mediaType, digest, size: Number(size) }
}

export async function findManifest(
  target: RepositoryConnection,
  reference: string,
): Promise<FoundManifest | undefined> {
  const call = pullCall(target, reference)
  const response = await target.send({ ...call, method: 'GET', statuses: [200, 404], maxBytes: maxManifestBytes })
  if (response.status === 404) return undefined
  if (response.isCutShort) throw tooLargeError(target, call.description)
  const mediaType = mediaTypeOf(target, call.description, response)
  const { body: bytes } = response
  const digest = digestOf(bytes)
  checkDigestMatches(target, call.description, reference, digest)
  checkReportedDigest(target, call.description, response, digest)
  const schema = indexTypes.includes(mediaType) ? IndexDocument : ManifestDocument
  const content = parseDocument(schema, response, `The response of registry ${target.registry} for ${call.description}`)
  if ((content.mediaType ?? mediaType) !== mediaType)
    throw invalidResponseError(target, call.description, 'reports two media types')
  return { content: { ...content, mediaType }, bytes, descriptor: { mediaType, digest, size: bytes.length } }
}

/** `isReferrerListed`: whether the registry lists the manifest as a referrer of its subject. */
export async function uploadManifest(
  target: RepositoryConnection,
  reference: string,
  bytes: Uint8Array,
  mediaType: string,
): Promise<{ descriptor: Descriptor; isReferrerListed: boolean }> {
  const call = callOf(target, reference, 'pull,push')
  const digest = digestOf(bytes)
  if (bytes.length > maxManifestBytes) throw tooLargeError(target, call.description)
  if (isDigest(reference) && reference !== digest) {
    const message = `The manifest for ${call.description} has the digest ${digest}. Push it under that digest.`
    throw new RegistryError('invalid', message)
  }
  const content = { headers: { 'content-type': mediaType }, body: bytes, blobBytes: bytes.length }
  const response = await target.send({ ...call, ...content, method: 'PUT', statuses: [201] })
  checkReportedDigest(target, call.description, response, digest)
  const isReferrerListed = headerOf(response, 'oci-subject') !== undefined
  return { descriptor: { mediaType, digest, size: bytes.length }, isReferrerListed }
}

/** Succeeds if the manifest does not exist. */
export async function removeManifest(target: RepositoryConnection, reference: string): Promise<void> {
  const call = callOf(target, reference, 'delete')
  await target.send({ ...call, method: 'DELETE', statuses: [200, 202, 404] })
}

/** Throws `RegistryError` for a media type that the request did not accept. */
function mediaTypeOf(connection: RegistryConnection, description: string, response: TransportResponse): string {
  const mediaType = headerOf(response, 'content-type')?.split(';')[0]?.trim() ?? ''
  if (indexTypes.includes(mediaType) || manifestTypes.includes(mediaType)) return mediaType
  throw invalidResponseError(connection, description, 'uses a media type that is neither OCI nor Docker version 2')
}

function checkDigestMatches(
  connection: RegistryConnection,
  description: string,
  reference: string,
  digest: string,
): void {
  if (!isDigest(digest)) throw invalidResponseError(connection, description, 'reports no SHA-256 digest')
  if (isDigest(reference) && reference !== digest)
    throw invalidResponseError(connection, description, 'returns other content')
}

function checkReportedDigest(
  connection: RegistryConnection,
  description: string,
  response: TransportResponse,
  digest: string,
): void {
  const reportedDigest = headerOf(response, 'docker-content-digest')
  if (reportedDigest !== undefined && reportedDigest !== digest)
    throw invalidResponseError(connection, description, 'reports a digest that does not match the content')
}

function invalidResponseError({ registry }: RegistryConnection, description: string, reason: string): RegistryError {
  const message = `Registry ${registry} returned an invalid response for ${description}: it ${reason}.`
  return new RegistryError('invalid', `${message} Push it again, or use another.`)
}

function tooLargeError({ registry }: RegistryConnection, description: string): RegistryError {
  const limitText = `${maxManifestBytes >> 20} MiB`
  return new RegistryError(
    'too_large',
    `${description} at registry ${registry} is larger than ${limitText}. Make it smaller.`,
  )
}
