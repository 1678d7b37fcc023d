import { type RelayCaller } from '../caller.ts'
import { sha256 } from '../id.ts'
import * as keys from '../db/keys.ts'
import { create, orThrow } from '../db/table.ts'

/** Replay protection: every signed relay request is accepted once. */

/** Older tokens are rejected by their age, clock skew included. */
const rememberSeconds = 130

/** Consumes a request's token, in the transaction of the request's change. Fails on a replay. */
export const consumeNonce = ({ relayId, tokenId, issuedAtMs }: RelayCaller) =>
  orThrow(create(keys.relayRequest(relayId, tokenId), { ttl: rememberedUntil(issuedAtMs) }), 'unauthenticated')

/** Seconds by the relay's clock, which may be ahead. */
const rememberedUntil = (issuedAtMs: number): number => Math.ceil(issuedAtMs / 1000) + rememberSeconds

/**
 * Separate token items would double the cost of a heartbeat, so the cluster record keeps the last few as text:
 * `<floor>,<hash><issued>,…` in seconds, base 36. Tokens as old as the last dropped one (the floor) are rejected.
 */
const keep = 32
const hashDigits = 10

/** The stored tokens including this one, or undefined if it was used before. */
export function consumeHeartbeatNonce(
  remembered: string,
  { tokenId, issuedAtMs }: RelayCaller,
  nowMs: number,
): string | undefined {
  const [floor = '0', ...known] = remembered.split(',')
  const spent = sha256(tokenId).slice(0, hashDigits)
  const issued = Math.ceil(issuedAtMs / 1000)
  if (issued <= Number.parseInt(floor, 36) || known.some((entry) => entry.startsWith(spent))) return undefined
  const live = known.filter((entry) => issuedOf(entry) > nowMs / 1000 - rememberSeconds)
  const entries = [...live, spent + issued.toString(36)].toSorted((a, b) => issuedOf(a) - issuedOf(b))
  const dropped = entries.slice(0, Math.max(0, entries.length - keep)).at(-1)
  return [dropped === undefined ? floor : issuedOf(dropped).toString(36), ...entries.slice(-keep)].join(',')
}

const issuedOf = (entry: string): number => Number.parseInt(entry.slice(hashDigits), 36)
