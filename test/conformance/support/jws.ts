import { createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from 'node:crypto'

/** Compact JWS with Ed25519 (RFC 7515, RFC 8037). */

export interface KeySet {
  keys: (JsonWebKey & { kid: string })[]
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part = ''): any => JSON.parse(Buffer.from(part, 'base64url').toString())

export function signJws(header: object, claims: object, key: KeyObject): string {
  const signingInput = `${encode({ alg: 'EdDSA', ...header })}.${encode(claims)}`
  return `${signingInput}.${sign(null, Buffer.from(signingInput), key).toString('base64url')}`
}

/**
 * Verifies a token with a key set. Throws if no key has the id of the token, the algorithm is not EdDSA, or the
 * signature is wrong.
 */
export function verifyJws(token: string, { keys }: KeySet): { header: any; claims: any } {
  const [header = '', claims = '', signature = ''] = token.split('.')
  const { kid, alg } = decode(header)
  const jwk = keys.find((candidate) => candidate.kid === kid)
  if (jwk === undefined || alg !== 'EdDSA') throw new Error(`No key of the set signs as ${kid} with ${alg}.`)
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  if (!verify(null, Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))) {
    throw new Error('The signature is wrong.')
  }
  return { header: decode(header), claims: decode(claims) }
}
