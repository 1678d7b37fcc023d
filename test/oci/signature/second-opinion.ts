import { createPublicKey, type KeyObject } from 'node:crypto'
import type { TrustedKey } from '@platform/oci/signature/verify'
import type { Manifest } from '@platform/oci/types'
import { type Bundle, bundleFromJSON, isBundleWithDsseEnvelope, toMessageSignatureBundle } from '@sigstore/bundle'
import { crypto as sigstore, dsse } from '@sigstore/core'
import { type TrustMaterial, toSignedEntity, Verifier } from '@sigstore/verify'
import type { MemoryRegistry } from '../../support/memory-registry.ts'

/**
 * Whether one of the keys signed a digest, according to the sigstore verifier. Discovery, payload checks and key limits
 * are reimplemented here.
 */
export function secondOpinion(
  registry: MemoryRegistry,
  repository: string,
  digests: readonly string[],
  keys: readonly TrustedKey[],
  atMs: number,
): boolean {
  const usableKeys = keys.filter((key) => maySign(key, repository, atMs)).map(({ pem }) => createPublicKey(pem))
  return digests.some((digest) =>
    usableKeys.some(
      (key) => hasStatement(registry, repository, digest, key) || hasPayload(registry, repository, digest, key),
    ),
  )
}

function maySign({ repositories, notBefore, notAfter }: TrustedKey, repository: string, atMs: number): boolean {
  const isHere = repositories?.some((each) => {
    const folders = each.split('/').filter(Boolean)
    const isWhole = folders[0] === 'localhost' || folders[0]?.includes('.') || folders[0]?.includes(':')
    const pathNames = isWhole ? ['registry.test', ...repository.split('/')] : repository.split('/')
    return folders.length > 0 && folders.every((folder, index) => pathNames[index] === folder)
  })
  const at = new Date(atMs).toISOString()
  const isDate = [notBefore, notAfter].every((date) => date === undefined || !Number.isNaN(Date.parse(date)))
  return (isHere ?? true) && isDate && (notBefore ?? '0') <= at && at <= (notAfter ?? '9')
}

function hasStatement(registry: MemoryRegistry, repository: string, digest: string, key: KeyObject): boolean {
  const type = 'application/vnd.dev.sigstore.bundle.v0.3+json'
  return [...registry.manifests.values()].some(({ bytes }) => {
    const { artifactType, subject, layers = [] } = JSON.parse(bytes.toString()) as Partial<Manifest>
    const isSignature = artifactType === type && subject?.digest === digest && layers.length === 1
    const blob = registry.blobs.get(`${repository} ${layers[0]?.digest}`)
    if (!isSignature || blob === undefined || layers[0]?.mediaType !== type) return false
    const bundle = attempt(() => bundleFromJSON(withoutLog(JSON.parse(blob.toString()))))
    if (bundle === undefined || bundle.mediaType !== type || !isBundleWithDsseEnvelope(bundle)) return false
    const { payload, payloadType } = bundle.content.dsseEnvelope
    if (payloadType !== 'application/vnd.in-toto+json' || !isAcceptedStatement(bundle, key)) return false
    const { _type: kind, ...statement } = attempt(() => JSON.parse(payload.toString())) ?? {}
    return (
      kind === 'https://in-toto.io/Statement/v1' &&
      statement.predicateType === 'https://sigstore.dev/cosign/sign/v1' &&
      statement.subject.some((each: { digest: { sha256: string } }) => `sha256:${each.digest.sha256}` === digest)
    )
  })
}

/** Removes log entries and timestamps, which are not verified. */
const withoutLog = (bundle: { verificationMaterial?: object }): object => ({
  ...bundle,
  verificationMaterial: { ...bundle.verificationMaterial, tlogEntries: [], timestampVerificationData: {} },
})

/** sigstore verifies envelopes with SHA-256; other hashes are verified as message signatures. */
function isAcceptedStatement(bundle: Bundle, key: KeyObject): boolean {
  if (isAccepted(bundle, key)) return true
  if (!isBundleWithDsseEnvelope(bundle) || bundle.verificationMaterial.content.$case !== 'publicKey') return false
  const { payload, payloadType, signatures } = bundle.content.dsseEnvelope
  const message = dsse.preAuthEncoding(payloadType, payload)
  return isAcceptedMessage(message, signatures[0]?.sig ?? Buffer.of(), key)
}

function hasPayload(registry: MemoryRegistry, repository: string, image: string, key: KeyObject): boolean {
  const manifestDigest = registry.digestByTag.get(`${repository} ${image.replace(':', '-')}.sig`)
  const manifest = registry.manifests.get(`${repository} ${manifestDigest}`)
  const { layers = [] } = JSON.parse(manifest?.bytes.toString() ?? '{}') as Partial<Manifest>
  return layers.some(({ digest, mediaType, annotations }) => {
    const payload = registry.blobs.get(`${repository} ${digest}`)
    const signature = annotations?.['dev.cosignproject.cosign/signature']
    if (mediaType !== 'application/vnd.dev.cosign.simplesigning.v1+json' || !payload || !signature) return false
    if (!isAcceptedMessage(payload, Buffer.from(signature, 'base64'), key)) return false
    const criticalPart = attempt(() => JSON.parse(payload.toString()))?.critical
    return (
      criticalPart?.type === 'cosign container image signature' &&
      criticalPart.image['docker-manifest-digest'] === image
    )
  })
}

/** SHA-256, SHA-384 and SHA-512 in the bundle format. */
const hashes = [1, 2, 3]

function isAcceptedMessage(message: Buffer, signature: Buffer, key: KeyObject): boolean {
  // The bundle format has no value for Ed25519, which needs no separate hash.
  if (key.asymmetricKeyType === 'ed25519') return sigstore.verify(message, key, signature)
  return hashes.some((algorithm) => {
    const digest = sigstore.digest('sha256', message)
    const bundle = toMessageSignatureBundle({ digest, signature, keyHint: 'any' })
    if (bundle.content.$case === 'messageSignature') bundle.content.messageSignature.messageDigest.algorithm = algorithm
    return isAccepted(bundle, key, message)
  })
}

function isAccepted(bundle: Bundle, publicKey: KeyObject, artifact?: Buffer): boolean {
  const trust: TrustMaterial = {
    certificateAuthorities: [],
    timestampAuthorities: [],
    tlogs: [],
    ctlogs: [],
    publicKey: () => ({ publicKey, validFor: () => true }),
  }
  const verifier = new Verifier(trust, { tlogThreshold: 0, ctlogThreshold: 0, timestampThreshold: 0 })
  return attempt(() => verifier.verify(toSignedEntity(bundle, artifact))) !== undefined
}

function attempt<Value>(work: () => Value): Value | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
