import { headerOf } from './response.ts'
import type { FoundManifest } from './client.ts'
import { digestOf, isDigest } from './digest.ts'
import { IndexDocument, ManifestDocument, parseDocument } from './document.ts'
import { RegistryError } from './error.ts'
import { scopeOf } from './names.ts'
import type { TransportAnswer } from './transport.ts'
import { type Descriptor, mediaTypes } from './types.ts'
import type { RegistryConnection } from './connection.ts'

const mostBytes = 4 * 1024 * 1024

const indexTypes: readonly string[] = [mediaTypes.index, mediaTypes.dockerIndex]
const manifestTypes: readonly string[] = [mediaTypes.manifest, mediaTypes.dockerManifest]
const accept = [...manifestTypes, ...indexTypes].join(', ')

const addressOf = (wire: RegistryConnection, repository: string, reference: string) => ({
  what: `${repository} ${reference}`,
  url: wire.at(`${repository}/manifests/${reference}`),
})

/** Resolves a reference. One request, or two if the response headers lack the digest or the size. */
export async function resolveReference(
  wire: RegistryConnection,
  repository: string,
  reference: string,
): Promise<Descriptor | undefined> {
  const call = { ...addressOf(wire, repository, reference), scopes: [scopeOf(repository, 'pull')], headers: { accept } }
  const answer = await wire.send({ ...call, method: 'HEAD', statuses: [200, 404] })
  if (answer.status === 404) return undefined
  const digest = headerOf(answer, 'docker-content-digest')
  const size = headerOf(answer, 'content-length') ?? ''
  if (digest === undefined || !/^\d{1,15}$/.test(size))
    return (await findManifest(wire, repository, reference))?.descriptor
  const mediaType = typeOf(wire, call.what, answer)
  checkNamed(wire, call.what, reference, digest)
  if (Number(size) > mostBytes) throw tooLarge(wire, call.what)
  return { mediaType, digest, size: Number(size) }
}

/** Downloads a manifest or an index. One request. */
export async function findManifest(
  wire: RegistryConnection,
  repository: string,
  reference: string,
): Promise<FoundManifest | undefined> {
  const call = { ...addressOf(wire, repository, reference), scopes: [scopeOf(repository, 'pull')], headers: { accept } }
  const answer = await wire.send({ ...call, method: 'GET', statuses: [200, 404], maxBytes: mostBytes })
  if (answer.status === 404) return undefined
  if (answer.isCutShort) throw tooLarge(wire, call.what)
  const mediaType = typeOf(wire, call.what, answer)
  const { body: bytes } = answer
  const digest = digestOf(bytes)
  checkNamed(wire, call.what, reference, digest)
  checkTold(wire, call.what, answer, digest)
  const schema = indexTypes.includes(mediaType) ? IndexDocument : ManifestDocument
  const content = parseDocument(schema, answer, `What registry ${wire.registry} has as ${call.what}`)
  if ((content.mediaType ?? mediaType) !== mediaType) throw lie(wire, call.what, 'calls it by two media types')
  return { content: { ...content, mediaType }, bytes, descriptor: { mediaType, digest, size: bytes.length } }
}

/** Uploads a manifest. One request. `isReferrerKept`: the registry lists the manifest as a referrer of its subject. */
export async function sendManifest(
  wire: RegistryConnection,
  repository: string,
  reference: string,
  bytes: Uint8Array,
  mediaType: string,
): Promise<{ descriptor: Descriptor; isReferrerKept: boolean }> {
  const call = { ...addressOf(wire, repository, reference), scopes: [scopeOf(repository, 'pull,push')] }
  const digest = digestOf(bytes)
  if (bytes.length > mostBytes) throw tooLarge(wire, call.what)
  if (isDigest(reference) && reference !== digest) {
    throw new RegistryError('invalid', `What is to be sent as ${call.what} has the digest ${digest}. Send it as that.`)
  }
  const headers = { 'content-type': mediaType }
  const answer = await wire.send({
    ...call,
    method: 'PUT',
    headers,
    body: bytes,
    blobBytes: bytes.length,
    statuses: [201],
  })
  checkTold(wire, call.what, answer, digest)
  const isReferrerKept = headerOf(answer, 'oci-subject') !== undefined
  return { descriptor: { mediaType, digest, size: bytes.length }, isReferrerKept }
}

/** Deletes a manifest; succeeds if it does not exist. One request. */
export async function removeManifest(wire: RegistryConnection, repository: string, reference: string): Promise<void> {
  const call = { ...addressOf(wire, repository, reference), scopes: [scopeOf(repository, 'delete')] }
  await wire.send({ ...call, method: 'DELETE', statuses: [200, 202, 404] })
}

/** Returns the media type of a response. Throws `RegistryError` if the request did not accept it. */
function typeOf(wire: RegistryConnection, what: string, answer: TransportAnswer): string {
  const mediaType = headerOf(answer, 'content-type')?.split(';')[0]?.trim() ?? ''
  if (indexTypes.includes(mediaType) || manifestTypes.includes(mediaType)) return mediaType
  throw lie(wire, what, 'has it in a form that is neither an OCI image nor a Docker image, version 2')
}

function checkNamed(wire: RegistryConnection, what: string, reference: string, digest: string): void {
  if (!isDigest(digest)) throw lie(wire, what, 'names it by what is not a SHA-256 digest')
  if (isDigest(reference) && reference !== digest) throw lie(wire, what, 'answers with other content')
}

/** Throws `RegistryError` if the registry reports another digest than the computed one. */
function checkTold(wire: RegistryConnection, what: string, answer: TransportAnswer, digest: string): void {
  const told = headerOf(answer, 'docker-content-digest')
  if (told !== undefined && told !== digest) throw lie(wire, what, 'tells a digest that the content does not have')
}

const lie = ({ registry }: RegistryConnection, what: string, how: string): RegistryError =>
  new RegistryError('invalid', `Registry ${registry} was asked for ${what} and ${how}. Push it again, or use another.`)

const tooLarge = ({ registry }: RegistryConnection, what: string): RegistryError =>
  new RegistryError(
    'too_large',
    `${what} at registry ${registry} is larger than ${mostBytes >> 20} MiB. Make it smaller.`,
  )
