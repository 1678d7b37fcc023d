import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { digestOf } from '@platform/oci/digest'
import { bundleType, envelopeBytes, serializeBundle } from '@platform/oci/signature/envelope'
import { simpleSigningPayload, statementPayload, statementType } from '@platform/oci/signature/payload'
import { signatureAnnotation, type SignatureLayout, simpleSigningType } from '@platform/oci/signature/sign'
import type { TrustedKey } from '@platform/oci/signature/verify'
import { type Descriptor, mediaTypes } from '@platform/oci/types'
import { type MemoryRegistry, memoryRegistry } from '../../support/memory-registry.ts'

export const repository = 'team/hello'

const pairs = {
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  p521: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  ed25519: generateKeyPairSync('ed25519'),
  rsa: generateKeyPairSync('rsa', { modulusLength: 3072 }),
  other: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  weak: generateKeyPairSync('rsa', { modulusLength: 1024 }),
  bitcoin: generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
}

export type KeyName = keyof typeof pairs

export const privatePem = (name: KeyName): string =>
  pairs[name].privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
export const publicPem = (name: KeyName): string =>
  pairs[name].publicKey.export({ type: 'spki', format: 'pem' }).toString()
export const trust = (name: KeyName, limits: Partial<TrustedKey> = {}): TrustedKey => ({
  name,
  pem: publicPem(name),
  ...limits,
})

export async function startSignatureFixtures() {
  const registry = memoryRegistry()
  const put = (content: object, tag: string) =>
    registry.putManifest(repository, tag, Buffer.from(JSON.stringify(content)), mediaTypes.manifest)
  const image = { schemaVersion: 2, mediaType: mediaTypes.manifest, layers: [] }
  const ourImage = await put({ ...image, annotations: { image: 'ours' } }, 'ours')
  const theirImage = await put({ ...image, annotations: { image: 'theirs' } }, 'theirs')
  const index = await put({ schemaVersion: 2, mediaType: mediaTypes.index, manifests: [ourImage] }, 'index')
  return { registry, ours: ourImage.digest, theirs: theirImage.digest, index: index.digest }
}

export type SignatureFixtures = Awaited<ReturnType<typeof startSignatureFixtures>>

export interface Changes {
  names?: string
  hash?: 'sha256' | 'sha384' | 'sha512'
  text?: (text: Buffer) => Buffer
  payload?: (payload: Buffer) => Buffer
  signature?: (signature: Buffer) => Buffer
  payloadType?: string
  mediaType?: string
  bundle?: (bundle: ReturnType<typeof JSON.parse>) => unknown
}

const identity = <Value>(value: Value): Value => value

export const put: Record<
  SignatureLayout,
  (fixtures: SignatureFixtures, digest: string, key: KeyName, changes?: Changes) => Promise<Descriptor>
> = {
  async referrer({ registry }, digest, key, changes = {}) {
    const {
      text = identity,
      payload = identity,
      signature = identity,
      payloadType = statementType,
      bundle = identity,
    } = changes
    const statementBytes = text(statementPayload(changes.names ?? digest))
    const signatureBytes = signature(signBytes(key, envelopeBytes(payloadType, statementBytes), changes.hash))
    const document = JSON.parse(serializeBundle(payload(statementBytes), signatureBytes, 'any').toString())
    document.dsseEnvelope.payloadType = payloadType
    const changedBundle = bundle(document)
    const bytes = Buffer.isBuffer(changedBundle) ? changedBundle : Buffer.from(JSON.stringify(changedBundle))
    return putBundle(registry, digest, bytes, changes.mediaType)
  },
  async tag({ registry }, digest, key, changes = {}) {
    const { text = identity, payload = identity, signature = identity, mediaType = simpleSigningType } = changes
    const payloadBytes = text(simpleSigningPayload(`registry.test/${repository}`, changes.names ?? digest))
    const signatureBytes = signature(signBytes(key, payloadBytes, changes.hash ?? 'sha256'))
    const blob = await registry.putBlob(repository, payload(payloadBytes))
    const annotations = { [signatureAnnotation]: signatureBytes.toString('base64') }
    return putTagged(registry, digest, [{ mediaType, ...blob, annotations }])
  },
}

export async function putBundle(registry: MemoryRegistry, digest: string, bytes: Buffer, mediaType = bundleType) {
  const blob = await registry.putBlob(repository, bytes)
  const emptyBlob = await registry.putBlob(repository, Buffer.from('{}'))
  return registry.putReferrer(repository, {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    artifactType: bundleType,
    config: { mediaType: mediaTypes.empty, ...emptyBlob },
    layers: [{ mediaType, ...blob }],
    subject: { mediaType: mediaTypes.manifest, digest, size: 1 },
  })
}

export async function putTagged(registry: MemoryRegistry, digest: string, added: Descriptor[]) {
  const tag = `${digest.replace(':', '-')}.sig`
  const existingManifest = (await registry.manifest(repository, tag))?.content
  const layers = [...(existingManifest && 'layers' in existingManifest ? existingManifest.layers : []), ...added]
  const config = { mediaType: mediaTypes.config, digest: digestOf('{}'), size: 2 }
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers }))
  return registry.putManifest(repository, tag, bytes, mediaTypes.manifest)
}

/** `hash` defaults to the hash of the curve, or to SHA-256 for RSA. Ed25519 ignores it. */
export function signBytes(key: KeyName, bytes: Buffer, hash: string | undefined): Buffer {
  const { privateKey }: { privateKey: KeyObject } = pairs[key]
  const curveHashes = { p384: 'sha384', p521: 'sha512' } as Partial<Record<KeyName, string>>
  return sign(key === 'ed25519' ? null : (hash ?? curveHashes[key] ?? 'sha256'), bytes, privateKey)
}
