import { createHash, randomBytes } from 'node:crypto'
import type { IdPrefix } from '@platform/contract/common'
import { now } from './clock.ts'

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Encodes the low `length × 5` bits in Crockford's base32, the most significant digit first. */
function base32(value: bigint, length: number): string {
  let text = ''
  for (let remaining = value; text.length < length; remaining >>= 5n) text = alphabet[Number(remaining & 31n)] + text
  return text
}

const ulid = (timeMs: number, entropy: Uint8Array): string =>
  base32(BigInt(timeMs), 10) + base32(BigInt(`0x${Buffer.from(entropy).toString('hex')}`), 16)

/** Returns a prefixed ULID: 48 bits of time and 80 random bits. A caller passes `timeMs` to keep ids in order. */
export const newId = (prefix: IdPrefix, timeMs: number = now()): string => `${prefix}_${ulid(timeMs, randomBytes(10))}`

/** Returns the same id for the same arguments. */
export const derivedId = (prefix: IdPrefix, timeMs: number, ...parts: string[]): string =>
  `${prefix}_${ulid(timeMs, createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 10))}`

export function timeMsOf(id: string): number {
  let timeMs = 0
  for (const digit of id.slice(-26, -16)) timeMs = timeMs * 32 + alphabet.indexOf(digit)
  return timeMs
}

const lastTenBits = (id: string): number => alphabet.indexOf(id.at(-2) ?? '') * 32 + alphabet.indexOf(id.at(-1) ?? '')

/** `bits` is at most ten. */
export const lowBits = (id: string, bits: number): number => lastTenBits(id) % 2 ** bits

export const withLowBits = (id: string, bits: number, value: number): string =>
  id.slice(0, -2) + base32(BigInt(lastTenBits(id) - lowBits(id, bits) + value), 2)

export const isId = (prefix: IdPrefix, text: string): boolean =>
  text.startsWith(`${prefix}_`) && ulidSuffix.test(text.slice(prefix.length))

const ulidSuffix = new RegExp(`^_[${alphabet}]{26}$`)

/** Returns 256 random bits as text that is safe in URLs and shells. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

export const newNonce = (): string => randomBytes(6).toString('base64url')

/** Returns hexadecimal digits. Plain hashing suffices for tokens, because they have 256 bits of entropy. */
export const sha256 = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex')

/** Returns a predictable number from 0 to 1, excluding 1. */
export const jitter = (): number => Math.random()

/** Returns a bound that sorts after all ids created before `timeMs`, and before all others. */
export const lowestIdAt = (prefix: IdPrefix, timeMs: number): string => `${prefix}_${base32(BigInt(timeMs), 10)}`
