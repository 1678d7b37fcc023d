import type { RelayCaller } from '../caller.ts'
import { sha256 } from '../id.ts'

/**
 * A heartbeat is accepted only once. Requests about a job need no record of their tokens: the job's status, claim
 * key, next output number and reported end make a repeat harmless.
 */

/** Requests older than this are rejected by their age, even with clock skew. */
const retentionSeconds = 130
/** Requests issued further in the future than this are rejected, so no heartbeat can be blocked for longer. */
const maxSkewSeconds = 60

/**
 * A separate item per token would double the cost of a heartbeat, so the cluster record lists recent tokens as text:
 * `<floor>,<hash><issued>,…`, with times in seconds, base 36. The floor is the issue time of the last token dropped
 * from the list; tokens issued at or before it are rejected.
 */
const maxTokens = 32
const hashLength = 10

export function consumeHeartbeatNonce(
  storedTokens: string,
  { tokenId, issuedAtMs }: RelayCaller,
  nowMs: number,
): string | undefined {
  const [storedFloor = '0', ...tokens] = storedTokens.split(',')
  // Later times were stored before the clock was set back.
  const latestIssuedSeconds = nowMs / 1000 + retentionSeconds
  const floor = Number.parseInt(storedFloor, 36) > nowMs / 1000 + maxSkewSeconds ? '0' : storedFloor
  const hash = sha256(tokenId).slice(0, hashLength)
  const issuedSeconds = Math.ceil(issuedAtMs / 1000)
  if (issuedSeconds <= Number.parseInt(floor, 36) || tokens.some((token) => token.startsWith(hash))) return undefined
  const isUnexpired = (token: string) =>
    secondsOf(token) > nowMs / 1000 - retentionSeconds && secondsOf(token) <= latestIssuedSeconds
  const unexpiredTokens = tokens.filter(isUnexpired)
  const newTokens = [...unexpiredTokens, hash + issuedSeconds.toString(36)].toSorted(
    (a, b) => secondsOf(a) - secondsOf(b),
  )
  const droppedToken = newTokens.slice(0, Math.max(0, newTokens.length - maxTokens)).at(-1)
  return [
    droppedToken === undefined ? floor : secondsOf(droppedToken).toString(36),
    ...newTokens.slice(-maxTokens),
  ].join(',')
}

const secondsOf = (token: string): number => Number.parseInt(token.slice(hashLength), 36)
