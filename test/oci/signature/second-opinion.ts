import { createPublicKey, type KeyObject } from 'node:crypto'
import type { TrustedKey } from '@platform/oci/signature/verify'
import type { Manifest } from '@platform/oci/types'
import { type Bundle, bundleFromJSON, isBundleWithDsseEnvelope, toMessageSignatureBundle } from '@sigstore/bundle'
import { crypto as sigstore, dsse } from '@sigstore/core'
import { type TrustMaterial, toSignedEntity, Verifier } from '@sigstore/verify'
import type { MemoryRegistry } from '../../support/memory-registry.ts'

/**
 * Whether a digest is signed by one of some keys, as the sigstore project's own verifier sees it. It judges signatures;
 * where they are found, what has to be in them and who may sign what when is said here, and said anew.
 */
export function secondOpinion(
  registry: MemoryRegistry,
  repository: string,
  digests: readonly string[],
  keys: readonly TrustedKey[],
  atMs: number,
): boolean {
  const usable = keys.filter((key) => maySign(key, repository, atMs)).map(({ pem }) => createPublicKey(pem))
  return digests.some((digest) =>
    usable.some((key) => {
      const texts = [...bundlesOf(registry, repository, digest, key), ...payloadsOf(registry, repository, digest, key)]
      return texts.some((names) => names(digest))
    }),
  )
}

function maySign({ repositories, notBefore, notAfter }: TrustedKey, repository: string, atMs: number): boolean {
  const isHere = repositories?.some((each) => {
    const folders = each.split('/').filter(Boolean)
    const isWhole = folders[0] === 'localhost' || folders[0]?.includes('.') || folders[0]?.includes(':')
    const place = isWhole ? ['registry.test', ...repository.split('/')] : repository.split('/')
    return folders.length > 0 && folders.every((folder, index) => place[index] === folder)
  })
  const at = new Date(atMs).toISOString()
  const isDate = [notBefore, notAfter].every((date) => date === undefined || !Number.isNaN(Date.parse(date)))
  return (isHere ?? true) && isDate && (notBefore ?? '0') <= at && at <= (notAfter ?? '9')
}

/** The statements that sigstore finds well signed with a key. */
function bundlesOf(registry: MemoryRegistry, repository: string, digest: string, key: KeyObject) {
  const type = 'application/vnd.dev.sigstore.bundle.v0.3+json'
  return [...registry.manifests.values()].flatMap(({ bytes }) => {
    const { artifactType, subject, layers = [] } = JSON.parse(bytes.toString()) as Partial<Manifest>
    const isSignature = artifactType === type && subject?.digest === digest && layers.length === 1
    const blob = registry.blobs.get(`${repository} ${layers[0]?.digest}`)
    if (!isSignature || blob === undefined || layers[0]?.mediaType !== type) return []
    const bundle = attempt(() => bundleFromJSON(withoutLog(JSON.parse(blob.toString()))))
    if (bundle === undefined || bundle.mediaType !== type || !isBundleWithDsseEnvelope(bundle)) return []
    const { payload, payloadType } = bundle.content.dsseEnvelope
    if (payloadType !== 'application/vnd.in-toto+json' || !isAcceptedStatement(bundle, key)) return []
    const { _type: kind, ...statement } = attempt(() => JSON.parse(payload.toString())) ?? {}
    return [
      (digest: string) =>
        kind === 'https://in-toto.io/Statement/v1' &&
        statement.predicateType === 'https://sigstore.dev/cosign/sign/v1' &&
        statement.subject.some((each: { digest: { sha256: string } }) => `sha256:${each.digest.sha256}` === digest),
    ]
  })
}

/** No log is believed, so that none is asked to be right. */
const withoutLog = (bundle: { verificationMaterial?: object }): object => ({
  ...bundle,
  verificationMaterial: { ...bundle.verificationMaterial, tlogEntries: [], timestampVerificationData: {} },
})

/** sigstore's envelopes are signed over SHA-256. Those over another hash it takes for signatures of a message. */
function isAcceptedStatement(bundle: Bundle, key: KeyObject): boolean {
  if (isAccepted(bundle, key)) return true
  if (!isBundleWithDsseEnvelope(bundle) || bundle.verificationMaterial.content.$case !== 'publicKey') return false
  const { payload, payloadType, signatures } = bundle.content.dsseEnvelope
  const message = dsse.preAuthEncoding(payloadType, payload)
  return isAcceptedMessage(message, signatures[0]?.sig ?? Buffer.of(), key)
}

/** The payloads of simple signing that sigstore finds well signed with a key. */
function payloadsOf(registry: MemoryRegistry, repository: string, digest: string, key: KeyObject) {
  const tagged = registry.tagged.get(`${repository} ${digest.replace(':', '-')}.sig`)
  const manifest = registry.manifests.get(`${repository} ${tagged}`)
  const { layers = [] } = JSON.parse(manifest?.bytes.toString() ?? '{}') as Partial<Manifest>
  return layers.flatMap(({ digest, mediaType, annotations }) => {
    const payload = registry.blobs.get(`${repository} ${digest}`)
    const signature = annotations?.['dev.cosignproject.cosign/signature']
    if (mediaType !== 'application/vnd.dev.cosign.simplesigning.v1+json' || !payload || !signature) return []
    if (!isAcceptedMessage(payload, Buffer.from(signature, 'base64'), key)) return []
    const critical = attempt(() => JSON.parse(payload.toString()))?.critical
    return [
      (digest: string) =>
        critical?.type === 'cosign container image signature' && critical.image['docker-manifest-digest'] === digest,
    ]
  })
}

/** SHA-256, SHA-384 and SHA-512, as the bundle's format numbers them. */
const hashes = [1, 2, 3]

function isAcceptedMessage(message: Buffer, signature: Buffer, key: KeyObject): boolean {
  // Its bundles have no word for Ed25519, which hashes by itself; what is below them has.
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
