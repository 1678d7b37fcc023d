import { createHash, randomBytes } from 'node:crypto'
import { type IdPrefix } from '@platform/contract/common'
import { now } from './clock.ts'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Encodes the low `length × 5` bits of a number in Crockford base32, most significant first. */
function base32(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest >>= 5n) text = alphabet[Number(rest & 31n)] + text
  return text
}

const ulid = (timeMs: number, entropy: Uint8Array): string =>
  base32(BigInt(timeMs), 10) + base32(BigInt(`0x${Buffer.from(entropy).toString('hex')}`), 16)

/** A new identifier: 48 bits of time and 80 random bits. `timeMs` overrides the time, to keep ids in order. */
export const newId = (prefix: IdPrefix, timeMs: number = now()): string => `${prefix}_${ulid(timeMs, randomBytes(10))}`

/** A deterministic identifier, so that a retried write finds the result of its first attempt. */
export const derivedId = (prefix: IdPrefix, timeMs: number, ...parts: string[]): string =>
  `${prefix}_${ulid(timeMs, createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 10))}`

/** The creation time of an identifier, in milliseconds. */
export function timeOf(id: string): number {
  let time = 0
  for (const digit of id.slice(-26, -16)) time = time * 32 + alphabet.indexOf(digit)
  return time
}

const lastTenBits = (id: string): number => alphabet.indexOf(id.at(-2) ?? '') * 32 + alphabet.indexOf(id.at(-1) ?? '')

/** The lowest bits of an identifier as a number; at most ten bits. */
export const lowBits = (id: string, bits: number): number => lastTenBits(id) % 2 ** bits

/** The identifier with its lowest bits replaced; at most ten bits. */
export const withLowBits = (id: string, bits: number, value: number): string =>
  id.slice(0, -2) + base32(BigInt(lastTenBits(id) - lowBits(id, bits) + value), 2)

/** Whether a text has the form of an identifier. */
export const isId = (prefix: IdPrefix, text: string): boolean =>
  text.startsWith(`${prefix}_`) && ulidSuffix.test(text.slice(prefix.length))

const ulidSuffix = new RegExp(`^_[${alphabet}]{26}$`)

/** A secret of 256 random bits, safe in URLs and shells. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/** A short random text that distinguishes writes. */
export const newNonce = (): string => randomBytes(6).toString('base64url')

/** SHA-256 as hex. Secrets with 256 bits of entropy are stored as this hash. */
export const sha256 = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')

/** A random number in [0, 1), for jitter only. */
export const jitter = (): number => Math.random()

/** Sorts after every id of this prefix created before `timeMs`, and before every later one. */
export const idsBefore = (prefix: IdPrefix, timeMs: number): string => `${prefix}_${base32(BigInt(timeMs), 10)}`
