import * as z from 'zod'
import { type RelayCaller } from './caller.ts'
import { nowSeconds } from './clock.ts'
import { sha256 } from './id.ts'
import * as keys from './db/keys.ts'
import { create } from './db/table.ts'

/** No signed relay request works twice (D21). */

/** Longer than any token can be valid, skew on both sides included. */
const rememberSeconds = 200

/** The step that spends a request's token, in the transaction that does what the request asks. Refused: a replay. */
export const spendToken = ({ relayId, tokenId }: RelayCaller) =>
  create(keys.relayRequest(relayId, tokenId), { ttl: nowSeconds() + rememberSeconds })

/**
 * Beats would pay twice for a token item of their own, so the row that a beat writes anyway remembers the last few.
 * Where there were more, `floorMs` refuses whatever is as old as the oldest that was dropped.
 */
const Recent = z.object({ floorMs: z.number(), tokens: z.array(z.tuple([z.string(), z.number()])) })
const none = { floorMs: 0, tokens: [] }
const keep = 32

/** The remembered tokens with this one, or undefined if it was used before. */
export function spendBeat(remembered: string, { tokenId, issuedAtMs }: RelayCaller, nowMs: number): string | undefined {
  const spent = sha256(tokenId).slice(0, 16)
  const recent = remembered === '[]' ? none : Recent.parse(JSON.parse(remembered))
  if (issuedAtMs <= recent.floorMs || recent.tokens.some(([id]) => id === spent)) return undefined
  const live = recent.tokens.filter(([, issued]) => issued > nowMs - rememberSeconds * 1000)
  const tokens = [...live, [spent, issuedAtMs] as const].toSorted(([, a], [, b]) => a - b)
  const dropped = tokens.slice(0, Math.max(0, tokens.length - keep)).at(-1)
  return JSON.stringify({ floorMs: dropped?.[1] ?? recent.floorMs, tokens: tokens.slice(-keep) })
}
