import { type KeyObject, sign, verify } from 'node:crypto'
import { type JsonObject, parseJsonObject } from './json.ts'

/** Thrown for a token that cannot be trusted. The message states the reason. */
export class InvalidJws extends Error {}

/** Signs claims as a compact JWS with Ed25519 (RFC 7515, RFC 8037). */
export function signJws(header: { typ: string; kid: string }, claims: JsonObject, privateKey: KeyObject): string {
  const signingInput = `${encode({ alg: 'EdDSA', ...header })}.${encode(claims)}`
  return `${signingInput}.${sign(null, Buffer.from(signingInput), privateKey).toString('base64url')}`
}

/**
 * Verifies a compact JWS and returns its claims. Throws `InvalidJws` unless the header has exactly `alg` EdDSA, this
 * `typ` and a known `kid`, and the signature matches that key. The key is never taken from the token.
 */
export function verifyJws(token: string, typ: string, keys: ReadonlyMap<string, KeyObject>): JsonObject {
  const [header, claims, signature, ...rest] = token.split('.')
  if (header === undefined || claims === undefined || signature === undefined || rest.length > 0) {
    throw new InvalidJws('it is not a compact JWS')
  }
  const key = keyFor(decodeObject(header), typ, keys)
  if (!verify(null, Buffer.from(`${header}.${claims}`), key, decode(signature))) {
    throw new InvalidJws('its signature is wrong')
  }
  return decodeObject(claims)
}

/** Decodes a compact JWS without verifying its signature. Throws `InvalidJws`. */
export function decodeUnverifiedJws(token: string): { header: JsonObject; claims: JsonObject } {
  const [header = '', claims = ''] = token.split('.')
  return { header: decodeObject(header), claims: decodeObject(claims) }
}

function keyFor(header: JsonObject, typ: string, keys: ReadonlyMap<string, KeyObject>): KeyObject {
  const unknownName = Object.keys(header).find((name) => !['alg', 'typ', 'kid'].includes(name))
  if (unknownName !== undefined) throw new InvalidJws(`its header contains ${unknownName}, which is not supported`)
  if (header.alg !== 'EdDSA') throw new InvalidJws('its algorithm is not EdDSA')
  if (header.typ !== typ) throw new InvalidJws(`its type is not ${typ}`)
  const key = typeof header.kid === 'string' ? keys.get(header.kid) : undefined
  if (key === undefined)
    throw new InvalidJws('this relay does not trust its key; enroll the relay again if the platform has replaced it')
  return key
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function decodeObject(part: string): JsonObject {
  const value = parseJsonObject(decode(part).toString('utf8'))
  if (value === undefined) throw new InvalidJws('a part of it is not a JSON object')
  return value
}

function decode(part: string): Buffer {
  const bytes = Buffer.from(part, 'base64url')
  // Node.js ignores characters outside of base64url, so only the canonical encoding of the bytes is accepted.
  if (bytes.toString('base64url') !== part) throw new InvalidJws('a part of it is not base64url')
  return bytes
}
