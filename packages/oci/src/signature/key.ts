import * as crypto from 'node:crypto'

/** PEM: PKCS #8 without a passphrase, and SPKI. */
export interface KeyPair {
  privateKeyPem: string
  publicKeyPem: string
}

/** Generates a key pair to sign images: ECDSA on P-256, the default of cosign. */
export function generateKeyPair(): KeyPair {
  const { privateKey, publicKey } = crypto.generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  return { privateKeyPem: privateKey, publicKeyPem: publicKey }
}

const curveHashes: Record<string, string> = { prime256v1: 'sha256', secp384r1: 'sha384', secp521r1: 'sha512' }

/**
 * Returns the hash algorithms that a key may sign with, the default first; null if the algorithm includes its hash.
 * Returns none for an unsupported key. Supported keys: ECDSA on P-256, P-384 or P-521, Ed25519, and RSA of at least
 * 2,048 bits.
 */
function hashesOf({ asymmetricKeyType, asymmetricKeyDetails = {} }: crypto.KeyObject): (string | null)[] {
  const { namedCurve = '', modulusLength = 0 } = asymmetricKeyDetails
  if (asymmetricKeyType === 'ed25519') return [null]
  if (asymmetricKeyType === 'rsa') return modulusLength >= 2048 ? ['sha256'] : []
  const hash = asymmetricKeyType === 'ec' ? curveHashes[namedCurve] : undefined
  return hash === undefined ? [] : [...new Set([hash, 'sha256'])]
}

/** Returns undefined for other content, such as a private key, and for unsupported or weak keys. */
export function readPublicKey(pem: string): crypto.KeyObject | undefined {
  if (!pem.trimStart().startsWith('-----BEGIN PUBLIC KEY-----')) return undefined
  try {
    const key = crypto.createPublicKey(pem)
    return hashesOf(key).length > 0 ? key : undefined
  } catch {
    return undefined
  }
}

/** Throws `TypeError` if the key cannot sign. */
export function readPrivateKey(pem: string): crypto.KeyObject {
  const key = valueOrUndefined(() => crypto.createPrivateKey(pem))
  if (key === undefined || hashesOf(key).length === 0) {
    throw new TypeError('The private key is not a PEM text of an ECDSA, Ed25519 or RSA key without a passphrase.')
  }
  return key
}

const valueOrUndefined = <Value>(create: () => Value): Value | undefined => {
  try {
    return create()
  } catch {
    return undefined
  }
}

/** Returns the identifier of a key in signatures: the SHA-256 of the public key, in base64. */
export const keyHint = (key: crypto.KeyObject): string =>
  crypto
    .createHash('sha256')
    .update((key.type === 'private' ? crypto.createPublicKey(key) : key).export({ type: 'spki', format: 'der' }))
    .digest('base64')

/** `own` selects the default hash algorithm of the key. */
export function signBytes(key: crypto.KeyObject, bytes: Uint8Array, hash: 'own' | 'sha256'): Buffer {
  const [defaultHash = null] = hashesOf(key)
  return crypto.sign(defaultHash === null || hash === 'own' ? defaultHash : hash, bytes, key)
}

/** Accepts every hash algorithm that the key may sign with. */
export const isSignatureValid = (key: crypto.KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean =>
  hashesOf(key).some((hash) => valueOrUndefined(() => crypto.verify(hash, bytes, key, signature)) ?? false)
