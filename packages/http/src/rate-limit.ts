import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { elapsedMs } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { addCalls, countAllowedCall, perMinute as perMinuteOf } from '@platform/core/db/call-limit'
import { platformError } from '@platform/core/error'
import { log } from '@platform/core/log'
import { ipNetworkOf } from '@platform/core/lib/ip-network'
import { type RateLimitState, reportRateLimit } from '@platform/core/lib/rate-limit-state'
import type { LazyJson } from './request.ts'

interface RateLimit {
  perMinute: number
  burst: number
}

type Limiter = (principal: string) => RateLimitState

const maximumBuckets = 10_000

/**
 * Creates a limiter with one token bucket per principal and process. A bucket is stored as the time at which it is
 * full; each allowed call moves that time on. The times are monotonic, so the system clock may change.
 */
export function limiter({ perMinute, burst }: RateLimit): Limiter {
  const limit = Math.min(burst, perMinute)
  const costMs = 60_000 / perMinute
  // The times are sums of fractions, so comparisons need a tolerance.
  const toleranceMs = Math.min(1, costMs / 2)
  const fullAtMs = new Map<string, number>()

  return (principal) => {
    const nowMs = elapsedMs()
    const untilFullMs = Math.max(0, (fullAtMs.get(principal) ?? 0) - nowMs)
    const waitMs = untilFullMs + costMs - limit * costMs
    const isAllowed = waitMs < toleranceMs
    const nextUntilFullMs = isAllowed ? untilFullMs + costMs : untilFullMs
    storeBucket(fullAtMs, principal, nowMs + nextUntilFullMs)
    return {
      limit,
      remaining: Math.max(0, Math.floor(limit - (nextUntilFullMs - toleranceMs) / costMs)),
      resetSeconds: Math.ceil(nextUntilFullMs / 1000),
      retryAfterSeconds: isAllowed ? 0 : Math.ceil(waitMs / 1000),
    }
  }
}

// Moves the bucket to the end of the map; the least recently used bucket is evicted.
function storeBucket<Bucket>(buckets: Map<string, Bucket>, principal: string, bucket: Bucket): void {
  buckets.delete(principal)
  if (buckets.size >= maximumBuckets) buckets.delete(buckets.keys().next().value ?? '')
  buckets.set(principal, bucket)
}

/** A process reports its calls in groups, so that at most one of ten requests writes. */
const smallestGroup = 10

/**
 * Limits the calls of a principal in all processes. A process adds a group of calls to the count in the table, learns
 * the total, and rejects calls for the rest of the minute if it has reached the limit. A process may therefore allow
 * one group too many: sixty processes at most twice the limit. Calls of a principal that send less than a group from
 * each process are never counted in the table.
 */
export function sharedLimiter({ perMinute, burst }: RateLimit) {
  const group = Math.max(smallestGroup, Math.ceil(perMinute / 60))
  const windows = new Map<string, { endsAtMs: number; unreported: number; isExceeded: boolean }>()

  /** Returns the seconds until calls are allowed again; 0 if this call is allowed. */
  return async (principal: string): Promise<number> => {
    const nowMs = elapsedMs()
    const current = windows.get(principal)
    const isCurrent = current !== undefined && current.endsAtMs > nowMs
    const window = isCurrent ? current : { endsAtMs: nowMs + 60_000, unreported: 0, isExceeded: false }
    storeBucket(windows, principal, window)
    if (window.isExceeded) return Math.ceil((window.endsAtMs - nowMs) / 1000)
    if (++window.unreported < group) return 0
    const calls = window.unreported
    window.unreported = 0
    try {
      const { count, secondsLeft } = await addCalls(`api:${principal}`, calls)
      Object.assign(window, { endsAtMs: elapsedMs() + secondsLeft * 1000, isExceeded: count >= perMinute + burst })
    } catch (cause) {
      log('debug', 'Failed to count calls of a principal', { cause })
    }
    return 0
  }
}

interface Call {
  caller: Caller | RelayCaller | undefined
  address: string
  json: LazyJson
}

const policy = (rate: RateLimit, principalOf: (call: Call) => string) => {
  const countCall = limiter(rate)
  return (call: Call) => countCall(principalOf(call))
}

const perMinute = (count: number): RateLimit => ({ perMinute: count, burst: count })
const byAddress = ({ address }: Call): string => ipNetworkOf(address)
const byUser = ({ caller }: Call): string => (caller?.kind === 'user' ? (caller.tokenId ?? caller.userId) : '')
const byRelay = ({ caller }: Call): string => (caller?.kind === 'relay' ? caller.relayId : '')

const apiRate = { perMinute: config.PLAT_LIMIT_API_PER_MINUTE, burst: config.PLAT_LIMIT_API_BURST }
const userPolicy = policy(apiRate, byUser)
const countUserCall = sharedLimiter(apiRate)
const relayPolicy = policy(perMinute(6000), byRelay)

const signInStepLimit = perMinute(config.PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE)
const codePolicy = policy(signInStepLimit, byAddress)
// Only the network is known before the token is verified. `refresh` then counts by session.
const refreshPolicy = policy(apiRate, byAddress)

// A browser can sign in in three ways. Each has the same limit as the API endpoint for it.
const browserSignInPolicy = (call: Call): RateLimitState | undefined => {
  const body = call.json()
  if ('refreshToken' in body) return refreshPolicy(call)
  return 'code' in body ? codePolicy(call) : undefined
}

// Failed sign-ins and batches are counted in the store by their use cases.
const specificPolicies = new Map<string, (call: Call) => RateLimitState | undefined>([
  ['POST /api/v1/auth/refresh', refreshPolicy],
  ['POST /api/v1/auth/session', browserSignInPolicy],
  ['POST /api/v1/auth/session/refresh', refreshPolicy],
  ['DELETE /api/v1/auth/session', policy(signInStepLimit, byAddress)],
  // The endpoint is public and reads all providers.
  ['GET /api/v1/auth/providers', policy(signInStepLimit, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/authorize', policy(signInStepLimit, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/callback', policy(signInStepLimit, byAddress)],
  ['POST /api/v1/auth/oidc/token', codePolicy],
  ['GET /api/v1/platform/identity/consent-callback', policy(signInStepLimit, byAddress)],
  ['POST /api/v1/platform/identity/consent-callback', policy(signInStepLimit, byAddress)],
])

// Limits of the calls of one address across all processes. Each process also counts its own calls, so that a flood
// causes no database calls.
const sharedLimit = (name: string, count: number) => ({ name, count, ofProcess: policy(perMinute(count), byAddress) })
const sharedLimits = new Map<string, ReturnType<typeof sharedLimit>>([
  ['POST /api/v1/setup/complete', sharedLimit('setup', config.PLAT_LIMIT_SETUP_PER_MINUTE)],
  ['POST /api/v1/relay/enroll', sharedLimit('enroll', config.PLAT_LIMIT_ENROLL_PER_MINUTE)],
])

type Operation = Pick<EndpointDefinition, 'method' | 'access' | 'path'>

const nameOf = ({ method, path }: Operation): string => `${method.toUpperCase()} ${path}`

const policyOf = (operation: Operation) => {
  const { access } = operation
  const specific = sharedLimits.get(nameOf(operation))?.ofProcess ?? specificPolicies.get(nameOf(operation))
  if (specific !== undefined || access === 'public') return specific
  return access === 'relay' ? relayPolicy : userPolicy
}

/** Counts a call and reports the limit. Throws `rate_limited` if the call exceeds the limit. */
export async function limit(operation: Operation, call: Call): Promise<void> {
  const state = policyOf(operation)?.(call)
  if (state === undefined) return
  reportRateLimit(state)
  const { retryAfterSeconds } = state
  if (retryAfterSeconds > 0) throw platformError('rate_limited', { retryAfterSeconds })
  if (call.caller?.kind === 'user') await limitOfAllProcesses(byUser(call), state)
  const shared = sharedLimits.get(nameOf(operation))
  if (shared !== undefined) await countAllowedCall(perMinuteOf(`${shared.name}:${byAddress(call)}`, shared.count))
}

async function limitOfAllProcesses(principal: string, state: RateLimitState): Promise<void> {
  const retryAfterSeconds = await countUserCall(principal)
  if (retryAfterSeconds === 0) return
  reportRateLimit({ ...state, remaining: 0, resetSeconds: retryAfterSeconds, retryAfterSeconds })
  throw platformError('rate_limited', { retryAfterSeconds })
}
