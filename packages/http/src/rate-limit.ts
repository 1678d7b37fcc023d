import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { elapsedMs } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { addCalls, countAllowedCall, perMinute as callsPerMinute } from '@platform/core/db/call-limit'
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

const maxBuckets = 10_000

/**
 * Creates a limiter with one token bucket per principal and process. A bucket is stored as the time at which it is
 * full; each allowed call delays that time. The times are monotonic, so the system clock may change.
 */
export function createLimiter({ perMinute, burst }: RateLimit): Limiter {
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

// Stores a bucket at the end of the map. If the map is full, removes the least recently used bucket.
function storeBucket<Bucket>(buckets: Map<string, Bucket>, principal: string, bucket: Bucket): void {
  buckets.delete(principal)
  if (buckets.size >= maxBuckets) buckets.delete(buckets.keys().next().value ?? '')
  buckets.set(principal, bucket)
}

/** Minimum size of a group of calls, so that at most one of ten calls of a principal writes to the table. */
const minGroupSize = 10

/**
 * Limits the calls of a principal in all processes. A process adds a group of calls to the count in the table, reads
 * the total, and rejects calls for the rest of the minute if the total has reached the limit. Each process may
 * therefore allow one group too many: with a limit of at least 600 calls per minute, sixty processes allow at most
 * twice the limit. Fewer calls than a group per process and minute are not counted in the table.
 */
export function createSharedLimiter({ perMinute, burst }: RateLimit) {
  const groupSize = Math.max(minGroupSize, Math.ceil(perMinute / 60))
  const windows = new Map<string, { endsAtMs: number; unreportedCallCount: number; isExceeded: boolean }>()

  /** Returns the seconds until calls are allowed again; 0 if this call is allowed. */
  return async (principal: string): Promise<number> => {
    const nowMs = elapsedMs()
    const currentWindow = windows.get(principal)
    const isCurrent = currentWindow !== undefined && currentWindow.endsAtMs > nowMs
    const window = isCurrent ? currentWindow : { endsAtMs: nowMs + 60_000, unreportedCallCount: 0, isExceeded: false }
    storeBucket(windows, principal, window)
    if (window.isExceeded) return Math.ceil((window.endsAtMs - nowMs) / 1000)
    if (++window.unreportedCallCount < groupSize) return 0
    const calls = window.unreportedCallCount
    window.unreportedCallCount = 0
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

const createPolicy = (rate: RateLimit, principalOf: (call: Call) => string) => {
  const countCall = createLimiter(rate)
  return (call: Call) => countCall(principalOf(call))
}

const ratePerMinute = (count: number): RateLimit => ({ perMinute: count, burst: count })
const byAddress = ({ address }: Call): string => ipNetworkOf(address)
const byUser = ({ caller }: Call): string => (caller?.kind === 'user' ? (caller.tokenId ?? caller.userId) : '')
const byRelay = ({ caller }: Call): string => (caller?.kind === 'relay' ? caller.relayId : '')

const apiRate = { perMinute: config.PLAT_LIMIT_API_PER_MINUTE, burst: config.PLAT_LIMIT_API_BURST }
const userPolicy = createPolicy(apiRate, byUser)
const countUserCall = createSharedLimiter(apiRate)
const relayPolicy = createPolicy(ratePerMinute(6000), byRelay)

const signInStepLimit = ratePerMinute(config.PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE)
const codePolicy = createPolicy(signInStepLimit, byAddress)
// Only the network is known before the token is verified. The use case then counts the calls of the session.
const refreshPolicy = createPolicy(apiRate, byAddress)

// A browser can sign in in three ways. Each has the same limit as the corresponding API endpoint.
const browserSignInPolicy = (call: Call): RateLimitState | undefined => {
  const body = call.json()
  if ('refreshToken' in body) return refreshPolicy(call)
  return 'code' in body ? codePolicy(call) : undefined
}

// The use cases count failed sign-ins, batches, relay updates and bulk changes in the store.
const specificPolicies = new Map<string, (call: Call) => RateLimitState | undefined>([
  ['POST /api/v1/auth/refresh', refreshPolicy],
  ['POST /api/v1/auth/session', browserSignInPolicy],
  ['POST /api/v1/auth/session/refresh', refreshPolicy],
  ['DELETE /api/v1/auth/session', createPolicy(signInStepLimit, byAddress)],
  // The endpoint is public and reads all providers.
  ['GET /api/v1/auth/providers', createPolicy(signInStepLimit, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/authorize', createPolicy(signInStepLimit, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/callback', createPolicy(signInStepLimit, byAddress)],
  ['POST /api/v1/auth/oidc/token', codePolicy],
  ['GET /api/v1/platform/identity/consent-callback', createPolicy(signInStepLimit, byAddress)],
  ['POST /api/v1/platform/identity/consent-callback', createPolicy(signInStepLimit, byAddress)],
])

// Limits the calls of one network in all processes. Each process also counts its own calls, so that a flood of calls
// causes few writes to the table.
const createSharedLimit = (name: string, count: number) => ({
  name,
  count,
  processPolicy: createPolicy(ratePerMinute(count), byAddress),
})
const sharedLimits = new Map<string, ReturnType<typeof createSharedLimit>>([
  ['POST /api/v1/setup/complete', createSharedLimit('setup', config.PLAT_LIMIT_SETUP_PER_MINUTE)],
  ['POST /api/v1/relay/enroll', createSharedLimit('enroll', config.PLAT_LIMIT_ENROLL_PER_MINUTE)],
])

type Operation = Pick<EndpointDefinition, 'method' | 'access' | 'path'>

const nameOf = ({ method, path }: Operation): string => `${method.toUpperCase()} ${path}`

const policyOf = (operation: Operation) => {
  const { access } = operation
  const specificPolicy = sharedLimits.get(nameOf(operation))?.processPolicy ?? specificPolicies.get(nameOf(operation))
  if (specificPolicy !== undefined || access === 'public') return specificPolicy
  return access === 'relay' ? relayPolicy : userPolicy
}

/** Counts a call and reports the limit. Throws `rate_limited` if the call exceeds the limit. */
export async function enforceRateLimit(operation: Operation, call: Call): Promise<void> {
  const state = policyOf(operation)?.(call)
  if (state === undefined) return
  reportRateLimit(state)
  const { retryAfterSeconds } = state
  if (retryAfterSeconds > 0) throw platformError('rate_limited', { retryAfterSeconds })
  if (call.caller?.kind === 'user') await enforceSharedUserLimit(byUser(call), state)
  const sharedLimit = sharedLimits.get(nameOf(operation))
  if (sharedLimit !== undefined)
    await countAllowedCall(callsPerMinute(`${sharedLimit.name}:${byAddress(call)}`, sharedLimit.count))
}

async function enforceSharedUserLimit(principal: string, state: RateLimitState): Promise<void> {
  const retryAfterSeconds = await countUserCall(principal)
  if (retryAfterSeconds === 0) return
  reportRateLimit({ ...state, remaining: 0, resetSeconds: retryAfterSeconds, retryAfterSeconds })
  throw platformError('rate_limited', { retryAfterSeconds })
}
