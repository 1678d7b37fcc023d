import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import { platformError } from '@platform/core/error'
import { ipNetworkOf } from '@platform/core/lib/ip-network'
import { type LazyJson, headersOf, type RequestHeaders } from './request.ts'
import type { HttpContext } from './context.ts'
import { refreshCookie } from './cookies.ts'

interface RateLimit {
  perMinute: number
  burst: number
}

/** The state of a limit after one call, for the `RateLimit` headers. */
export interface RateLimitState {
  limit: number
  remaining: number
  /** Seconds until the limit is fully restored. */
  resetSeconds: number
  /** Seconds until the next call is allowed; 0 if this call is allowed. */
  retryAfterSeconds: number
}

type Limiter = (principal: string) => RateLimitState

const maximumBuckets = 10_000

/**
 * Creates a limiter with one token bucket per principal and process. A bucket is stored as the time at which it is
 * full; each allowed call moves that time on.
 */
export function limiter({ perMinute, burst }: RateLimit): Limiter {
  const limit = Math.min(burst, perMinute)
  const costMs = 60_000 / perMinute
  // The times are sums of fractions, so comparisons need a tolerance.
  const toleranceMs = Math.min(1, costMs / 2)
  const fullAtMs = new Map<string, number>()

  return (principal) => {
    const nowMs = now()
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
function storeBucket(buckets: Map<string, number>, principal: string, fullAtMs: number): void {
  buckets.delete(principal)
  if (buckets.size >= maximumBuckets) buckets.delete(buckets.keys().next().value ?? '')
  buckets.set(principal, fullAtMs)
}

interface Call {
  caller: Caller | RelayCaller | undefined
  address: string
  json: LazyJson
  headers: RequestHeaders
}

const policy = (rate: RateLimit, principalOf: (call: Call) => string) => {
  const countCall = limiter(rate)
  return (call: Call) => countCall(principalOf(call))
}

const perMinute = (count: number): RateLimit => ({ perMinute: count, burst: count })
const byAddress = ({ address }: Call): string => ipNetworkOf(address)
const byUser = ({ caller }: Call): string => (caller?.kind === 'user' ? (caller.tokenId ?? caller.userId) : '')
const byOrganisation = ({ caller }: Call): string => caller?.organisationId ?? ''
const byRelay = ({ caller }: Call): string => (caller?.kind === 'relay' ? caller.relayId : '')

// The session is not verified yet, but it only groups calls here.
const sessionOf = (refreshToken: string): string => refreshToken.slice(0, 40).split('.')[0] ?? ''

const bySession = ({ json, address }: Call): string => {
  const { refreshToken } = json() as { refreshToken?: unknown }
  return typeof refreshToken === 'string' ? sessionOf(refreshToken) : ipNetworkOf(address)
}
const byBrowserSession = ({ headers, address }: Call): string =>
  sessionOf(refreshCookie(headers)) || ipNetworkOf(address)

const userPolicy = policy({ perMinute: config.PLAT_LIMIT_API_PER_MINUTE, burst: config.PLAT_LIMIT_API_BURST }, byUser)
const relayPolicy = policy(perMinute(6000), byRelay)

const signInStepLimit = perMinute(config.PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE)
const codeLimiter = limiter(signInStepLimit)
const refreshLimiter = limiter(perMinute(config.PLAT_LIMIT_REFRESH_PER_MINUTE))

// A browser can sign in in three ways. Each has the same limit as the API endpoint for it.
const browserSignInPolicy = (call: Call): RateLimitState | undefined => {
  const body = call.json()
  if ('refreshToken' in body) return refreshLimiter(bySession(call))
  return 'code' in body ? codeLimiter(byAddress(call)) : undefined
}

const batchPolicy = policy(perMinute(config.PLAT_LIMIT_BATCH_PER_MINUTE), byOrganisation)

// Failed sign-ins are counted in the store, not per process, so the login endpoints have no limit here.
const specificPolicies = new Map<string, (call: Call) => RateLimitState | undefined>([
  ['POST /api/v1/setup/complete', policy(perMinute(config.PLAT_LIMIT_SETUP_PER_MINUTE), byAddress)],
  ['POST /api/v1/relay/enroll', policy(perMinute(config.PLAT_LIMIT_ENROLL_PER_MINUTE), byAddress)],
  ['POST /api/v1/auth/refresh', (call) => refreshLimiter(bySession(call))],
  ['POST /api/v1/auth/session', browserSignInPolicy],
  ['POST /api/v1/auth/session/refresh', (call) => refreshLimiter(byBrowserSession(call))],
  ['DELETE /api/v1/auth/session', policy(signInStepLimit, byAddress)],
  // The endpoint is public and reads all providers.
  ['GET /api/v1/auth/providers', policy(signInStepLimit, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/authorize', policy(signInStepLimit, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/callback', policy(signInStepLimit, byAddress)],
  ['POST /api/v1/auth/oidc/token', (call) => codeLimiter(byAddress(call))],
  ['GET /api/v1/platform/identity/consent-callback', policy(signInStepLimit, byAddress)],
  ['POST /api/v1/platform/identity/consent-callback', policy(signInStepLimit, byAddress)],
  ['POST /api/v1/jobs/batch', batchPolicy],
  ['POST /api/v1/jobs/batch/{batchId}/retry', batchPolicy],
])

type Operation = Pick<EndpointDefinition, 'method' | 'access' | 'path'>

const policyOf = ({ method, access, path }: Operation) => {
  const specific = specificPolicies.get(`${method.toUpperCase()} ${path}`)
  if (specific !== undefined || access === 'public') return specific
  return access === 'relay' ? relayPolicy : userPolicy
}

/** Counts a call and sets the rate limit headers. Throws `rate_limited` if the call exceeds the limit. */
export function limit(context: HttpContext, operation: Operation, call: Omit<Call, 'headers'>): void {
  const state = policyOf(operation)?.({ ...call, headers: headersOf(context.env.event) })
  if (state === undefined) return
  Object.assign(context.env.headers, {
    'ratelimit-limit': String(state.limit),
    'ratelimit-remaining': String(state.remaining),
    'ratelimit-reset': String(state.resetSeconds),
  })
  const { retryAfterSeconds } = state
  if (retryAfterSeconds > 0) throw platformError('rate_limited', { retryAfterSeconds })
}
