import * as crypto from 'node:crypto'

/** PEM texts: PKCS #8 without a passphrase, and SPKI. */
export interface KeyPair {
  privateKeyPem: string
  publicKeyPem: string
}

/** A new key pair to sign images with: ECDSA on P-256, which everyone who verifies such signatures knows. */
export function generateKeyPair(): KeyPair {
  const { privateKey, publicKey } = crypto.generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  return { privateKeyPem: privateKey, publicKeyPem: publicKey }
}

/** The hash that goes with a curve. */
const curveHashes: Record<string, string> = { prime256v1: 'sha256', secp384r1: 'sha384', secp521r1: 'sha512' }

/**
 * The hashes that a key may sign with, the usual one first; null where the key brings its own. None for a key that is
 * not taken: ECDSA on P-256, P-384 or P-521, Ed25519, and RSA of 2,048 bits or more are.
 */
function hashesOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: crypto.KeyObject): (string | null)[] {
  const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails
  if (asymmetricKeyType === 'ed25519') return [null]
  if (asymmetricKeyType === 'rsa') return modulusLength >= 2048 ? ['sha256'] : []
  const hash = asymmetricKeyType === 'ec' ? curveHashes[namedCurve] : undefined
  return hash === undefined ? [] : [...new Set([hash, 'sha256'])]
}

/** The public key in a PEM text; undefined where there is another thing, such as a private key, or one too weak. */
export function readPublicKey(pem: string): crypto.KeyObject | undefined {
  if (!pem.trimStart().startsWith('-----BEGIN PUBLIC KEY-----')) return undefined
  try {
    const key = crypto.createPublicKey(pem)
    return hashesOf(key).length > 0 ? key : undefined
  } catch {
    return undefined
  }
}

/** The private key in a PEM text. Throws `TypeError` where it cannot be signed with. */
export function readPrivateKey(pem: string): crypto.KeyObject {
  const key = attempt(() => crypto.createPrivateKey(pem))
  if (key === undefined || hashesOf(key).length === 0) {
    throw new TypeError('The private key is not a PEM text of an ECDSA, Ed25519 or RSA key without a passphrase.')
  }
  return key
}

const attempt = <Value>(make: () => Value): Value | undefined => {
  try {
    return make()
  } catch {
    return undefined
  }
}

/** How a signature names its key: the SHA-256 of the public key, in base64. */
export const keyHint = (key: crypto.KeyObject): string =>
  crypto
    .createHash('sha256')
    .update((key.type === 'private' ? crypto.createPublicKey(key) : key).export({ type: 'spki', format: 'der' }))
    .digest('base64')

/** Signs bytes. `hash`: `own` is that of the key's curve. */
export function signBytes(key: crypto.KeyObject, bytes: Uint8Array, hash: 'own' | 'sha256'): Buffer {
  const [own = null] = hashesOf(key)
  return crypto.sign(own === null || hash === 'own' ? own : hash, bytes, key)
}

/** Whether a signature over bytes was made with the key, with either of the hashes that are in use. */
export const isSignatureValid = (key: crypto.KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean =>
  hashesOf(key).some((hash) => attempt(() => crypto.verify(hash, bytes, key, signature)) ?? false)
