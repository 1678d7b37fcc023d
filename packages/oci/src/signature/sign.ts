import { createPublicKey, type KeyObject } from 'node:crypto'
import type { RegistryClient } from '../client.ts'
import { digestOf, digestTag } from '../digest.ts'
import { RegistryError } from '../error.ts'
import { type Descriptor, type Manifest, mediaTypes } from '../types.ts'
import { bundleType, envelopeBytes, serializeBundle } from './envelope.ts'
import { isSignatureValid, keyHint, readPrivateKey, signBytes } from './key.ts'
import { signPredicateType, simpleSigningPayload, statementPayload, statementType } from './payload.ts'

/** `referrer`: layout of cosign 3 and later. `tag`: earlier layout, for clients that support no other. */
export type SignatureLayout = 'referrer' | 'tag'

export const simpleSigningType = 'application/vnd.dev.cosign.simplesigning.v1+json'
export const signatureAnnotation = 'dev.cosignproject.cosign/signature'

export const signatureTag = (digest: string): string => `${digestTag(digest)}.sig`

/**
 * Signs a digest of a repository with a private key (PEM) and adds the signature to the repository; other signatures
 * remain. The digest may be of an index or of a single-platform image. Concurrent signing of the same digest in the tag
 * layout may lose a signature. Returns the descriptor of the signature's manifest. Throws `RegistryError`, and
 * `TypeError` for a key that cannot sign.
 */
export function signImage(
  client: RegistryClient,
  repository: string,
  digest: string,
  privateKeyPem: string,
  { layout = 'referrer' }: { layout?: SignatureLayout } = {},
): Promise<Descriptor> {
  const key = readPrivateKey(privateKeyPem)
  return layout === 'tag' ? signByTag(client, repository, digest, key) : signByReferrer(client, repository, digest, key)
}

async function signByReferrer(
  client: RegistryClient,
  repository: string,
  digest: string,
  key: KeyObject,
): Promise<Descriptor> {
  const subject = await client.resolve(repository, digest)
  if (subject === undefined) throw new RegistryError('not_found', `${repository}@${digest} does not exist.`)
  const payload = statementPayload(digest)
  const signature = signBytes(key, envelopeBytes(statementType, payload), 'own')
  const bundleBlob = await client.putBlob(repository, serializeBundle(payload, signature, keyHint(key)))
  const emptyBlob = await client.putBlob(repository, Buffer.from('{}'))
  return client.putReferrer(repository, {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    artifactType: bundleType,
    config: { mediaType: mediaTypes.empty, ...emptyBlob },
    layers: [{ mediaType: bundleType, ...bundleBlob }],
    subject: { mediaType: subject.mediaType, digest, size: subject.size },
    annotations: {
      'org.opencontainers.image.created': new Date().toISOString(),
      'dev.sigstore.bundle.content': 'dsse-envelope',
      'dev.sigstore.bundle.predicateType': signPredicateType,
    },
  })
}

async function signByTag(
  client: RegistryClient,
  repository: string,
  digest: string,
  key: KeyObject,
): Promise<Descriptor> {
  const payload = simpleSigningPayload(`${client.registry}/${repository}`, digest)
  const existingManifest = await client.manifest(repository, signatureTag(digest))
  const existingLayers =
    existingManifest !== undefined && 'layers' in existingManifest.content ? existingManifest.content.layers : []
  // The same key has already signed the digest.
  if (existingManifest !== undefined && existingLayers.some((layer) => isSignatureOf(layer, payload, key)))
    return existingManifest.descriptor
  const signature = signBytes(key, payload, 'sha256').toString('base64')
  const blob = await client.putBlob(repository, payload)
  const annotations = { [signatureAnnotation]: signature }
  const layers = [...existingLayers, { mediaType: simpleSigningType, ...blob, annotations }]
  const rootfs = { type: 'layers', diff_ids: layers.map((layer) => layer.digest) }
  const config = Buffer.from(JSON.stringify({ architecture: '', os: '', config: {}, rootfs }))
  const manifest: Manifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: { mediaType: mediaTypes.config, ...(await client.putBlob(repository, config)) },
    layers,
  }
  const bytes = Buffer.from(JSON.stringify(manifest))
  return client.putManifest(repository, signatureTag(digest), bytes, mediaTypes.manifest)
}

function isSignatureOf({ digest, annotations }: Descriptor, payload: Buffer, key: KeyObject): boolean {
  const signature = annotations?.[signatureAnnotation]
  if (signature === undefined || digest !== digestOf(payload)) return false
  return isSignatureValid(createPublicKey(key), payload, Buffer.from(signature, 'base64'))
}
