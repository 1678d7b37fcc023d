import { type RelayCaller } from '../caller.ts'
import { sha256 } from '../id.ts'
import * as keys from '../db/keys.ts'
import { create, orThrow } from '../db/table.ts'

/** No signed relay request works twice (D21). */

/** A token is refused by its age this long after it was issued, skew included. */
const rememberSeconds = 130

/** The step that spends a request's token, in the transaction that does what the request asks. Refused: a replay. */
export const consumeNonce = ({ relayId, tokenId, issuedAtMs }: RelayCaller) =>
  orThrow(create(keys.relayRequest(relayId, tokenId), { ttl: rememberedUntil(issuedAtMs) }), 'unauthenticated')

/** In seconds; by the relay's clock, which may be ahead of ours. */
const rememberedUntil = (issuedAtMs: number): number => Math.ceil(issuedAtMs / 1000) + rememberSeconds

/**
 * Beats would pay twice for a token item of their own, so the row that a beat writes anyway remembers the last few, as
 * text: `<floor>,<hash><issued>,…` in seconds, base 36. Where there were more, the floor refuses whatever is as old as the
 * oldest that was dropped.
 */
const keep = 32
const hashDigits = 10

/** The remembered tokens with this one, or undefined if it was used before. */
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
