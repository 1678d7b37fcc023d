import { createHmac, type KeyObject, sign } from 'node:crypto'

/** Tokens in all their parts, right and wrong: the libraries that make tokens refuse to make most of these. */

export type Claims = Readonly<Record<string, unknown>>

export const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** How a token is signed: with this key, or whatever else is to be in the place of a signature. */
export type Signing = (input: string) => Uint8Array

export const byEdDsa =
  (key: KeyObject): Signing =>
  (input) =>
    sign(null, Buffer.from(input), key)

export const byHmac =
  (key: string | Uint8Array): Signing =>
  (input) =>
    createHmac('sha256', key).update(input).digest()

export const byDigest =
  (key: KeyObject): Signing =>
  (input) =>
    sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' })

export function tokenOf(header: Claims, claims: Claims, signing: Signing): string {
  const input = `${part(header)}.${part(claims)}`
  return `${input}.${Buffer.from(signing(input)).toString('base64url')}`
}

const read = (text: string): Record<string, unknown> => JSON.parse(Buffer.from(text, 'base64url').toString())

/** The parts of a token as they were read. */
export function partsOf(token: string) {
  const [header = '', claims = '', signature = ''] = token.split('.')
  return { header, claims, signature, readHeader: read(header), readClaims: read(claims) }
}
