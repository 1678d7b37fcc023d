import type { RegistryClient } from '../client.ts'
import { RegistryError } from '../error.ts'
import type { Descriptor } from '../types.ts'
import { bundleType, parseBundle } from './envelope.ts'
import { simpleSigningDigests, statementDigests } from './payload.ts'
import { signatureAnnotation, type SignatureLayout, signatureTag, simpleSigningType } from './sign.ts'

export interface DiscoveredSignature {
  layout: SignatureLayout
  /** The signed bytes and the signature; undefined if the content contains no signature. */
  content: { signedBytes: Buffer; signature: Buffer } | undefined
  /** Returns the digests in the signed content. Must be called only after the signature has been verified. */
  readDigests: () => string[]
}

/** Maximum for each layout: more than images have in practice, and few enough to limit the load. */
const maxSignatures = 50
const maxPayloadBytes = 64 * 1024
const maxBundleBytes = 2 ** 20

/**
 * Yields the signatures of a digest, referrers first. Malformed or missing data yields a signature without content.
 * Throws `RegistryError` if the registry is unreachable or refuses a request.
 */
export async function* discoverSignatures(
  client: RegistryClient,
  repository: string,
  digest: string,
): AsyncGenerator<DiscoveredSignature, void, undefined> {
  const referrers = await unlessBroken(() => client.referrers(repository, digest, bundleType))
  if (referrers === 'broken') yield { layout: 'referrer', ...noSignature }
  for (const referrer of referrers === 'broken' ? [] : referrers.slice(0, maxSignatures)) {
    yield { layout: 'referrer', ...((await readReferrer(client, repository, referrer)) ?? noSignature) }
  }
  const taggedManifest = await unlessBroken(() => client.manifest(repository, signatureTag(digest)))
  if (taggedManifest === 'broken') yield { layout: 'tag', ...noSignature }
  if (taggedManifest === 'broken' || taggedManifest === undefined || !('layers' in taggedManifest.content)) return
  for (const layer of taggedManifest.content.layers.slice(0, maxSignatures)) {
    yield { layout: 'tag', ...((await readTagged(client, repository, layer)) ?? noSignature) }
  }
}

type SignatureContent = Pick<DiscoveredSignature, 'content' | 'readDigests'>

const noSignature: SignatureContent = { content: undefined, readDigests: () => [] }

async function readReferrer(
  client: RegistryClient,
  repository: string,
  referrer: Descriptor,
): Promise<SignatureContent | undefined> {
  const manifest = await unlessBroken(() => client.manifest(repository, referrer.digest))
  const layers = typeof manifest === 'object' && 'layers' in manifest.content ? manifest.content.layers : []
  const [layer] = layers
  if (layer?.mediaType !== bundleType || layers.length !== 1) return undefined
  const bytes = await unlessBroken(() => client.blob(repository, layer, maxBundleBytes))
  const bundle = bytes === 'broken' ? undefined : parseBundle(bytes)
  return bundle && { content: bundle, readDigests: () => statementDigests(bundle.payload) }
}

async function readTagged(
  client: RegistryClient,
  repository: string,
  layer: Descriptor,
): Promise<SignatureContent | undefined> {
  const signature = layer.annotations?.[signatureAnnotation]
  if (layer.mediaType !== simpleSigningType || signature === undefined) return undefined
  const signedBytes = await unlessBroken(() => client.blob(repository, layer, maxPayloadBytes))
  if (signedBytes === 'broken') return undefined
  return {
    content: { signedBytes, signature: Buffer.from(signature, 'base64') },
    readDigests: () => simpleSigningDigests(signedBytes),
  }
}

/**
 * Returns `broken` for malformed or missing content, which is not a signature. Rethrows other errors, which do not show
 * whether there is a signature.
 */
async function unlessBroken<Value>(read: () => Promise<Value>): Promise<Value | 'broken'> {
  try {
    return await read()
  } catch (error) {
    const isBroken = error instanceof RegistryError && ['invalid', 'not_found', 'too_large'].includes(error.problem)
    if (isBroken) return 'broken'
    throw error
  }
}
