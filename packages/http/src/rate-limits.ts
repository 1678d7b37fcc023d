import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { config } from '@platform/core/config'
import { platformError } from '@platform/core/error'
import { ipNetworkOf } from '@platform/core/lib/ip-network'
import type { LazyJson } from './body.ts'
import type { HttpContext } from './context.ts'
import type { RequestHeaders } from './cookie.ts'
import { headersOf } from './event.ts'
import { limiter, type RateLimit, type RateLimitState } from './rate-limiter.ts'
import { refreshCookie } from './session-cookie.ts'

/** What limits tell calls apart by. */
interface Call {
  caller: Caller | RelayCaller | undefined
  address: string
  json: LazyJson
  headers: RequestHeaders
}

const policy = (rate: RateLimit, principalOf: (call: Call) => string) => {
  const take = limiter(rate)
  return (call: Call) => take(principalOf(call))
}

const perMinute = (count: number): RateLimit => ({ perMinute: count, burst: count })
const byAddress = ({ address }: Call): string => ipNetworkOf(address)
const byUser = ({ caller }: Call): string => (caller?.kind === 'user' ? (caller.tokenId ?? caller.userId) : '')
const byOrganisation = ({ caller }: Call): string => caller?.organisationId ?? ''
const byRelay = ({ caller }: Call): string => (caller?.kind === 'relay' ? caller.relayId : '')

/** The session that a refresh token says it belongs to: enough to tell calls apart, proven later. */
const sessionOf = (refreshToken: string): string => refreshToken.slice(0, 40).split('.')[0] ?? ''

/** By session where there is a token, else by address. */
const bySession = ({ json, address }: Call): string => {
  const { refreshToken } = json() as { refreshToken?: unknown }
  return typeof refreshToken === 'string' ? sessionOf(refreshToken) : ipNetworkOf(address)
}
const bySessionOfBrowser = ({ headers, address }: Call): string =>
  sessionOf(refreshCookie(headers)) || ipNetworkOf(address)

const forUsers = policy({ perMinute: config.PLAT_LIMIT_API_PER_MINUTE, burst: config.PLAT_LIMIT_API_BURST }, byUser)
const forRelays = policy(perMinute(6000), byRelay)

const signInSteps = perMinute(config.PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE)
const codes = limiter(signInSteps)
const refreshes = limiter(perMinute(config.PLAT_LIMIT_REFRESH_PER_MINUTE))

/** A browser signs in in three ways; each has the limit that it has elsewhere, and shares it. */
const forSignInOfBrowsers = (call: Call): RateLimitState | undefined => {
  const given = call.json()
  if ('refreshToken' in given) return refreshes(bySession(call))
  return 'code' in given ? codes(byAddress(call)) : undefined
}

const forBatches = policy(perMinute(config.PLAT_LIMIT_BATCH_PER_MINUTE), byOrganisation)

/** Endpoints with a limit of their own (D34). Failed sign-ins are counted by the platform, not by a process. */
const ownPolicies = new Map<string, (call: Call) => RateLimitState | undefined>([
  ['POST /api/v1/setup/complete', policy(perMinute(config.PLAT_LIMIT_SETUP_PER_MINUTE), byAddress)],
  ['POST /api/v1/relay/enroll', policy(perMinute(config.PLAT_LIMIT_ENROLL_PER_MINUTE), byAddress)],
  ['POST /api/v1/auth/refresh', (call) => refreshes(bySession(call))],
  ['POST /api/v1/auth/session', forSignInOfBrowsers],
  ['POST /api/v1/auth/session/refresh', (call) => refreshes(bySessionOfBrowser(call))],
  ['DELETE /api/v1/auth/session', policy(signInSteps, byAddress)],
  // Anybody may ask, and it reads all providers.
  ['GET /api/v1/auth/providers', policy(signInSteps, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/authorize', policy(signInSteps, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/callback', policy(signInSteps, byAddress)],
  ['POST /api/v1/auth/oidc/token', (call) => codes(byAddress(call))],
  ['GET /api/v1/platform/identity/consent-callback', policy(signInSteps, byAddress)],
  ['POST /api/v1/platform/identity/consent-callback', policy(signInSteps, byAddress)],
  ['POST /api/v1/jobs/batch', forBatches],
  ['POST /api/v1/jobs/batch/{batchId}/retry', forBatches],
])

/** What is called, as far as limits care. */
type Operation = Pick<EndpointDefinition, 'method' | 'access' | 'path'>

const policyOf = ({ method, access, path }: Operation) => {
  const own = ownPolicies.get(`${method} ${path}`)
  if (own !== undefined || access === 'public') return own
  return access === 'relay' ? forRelays : forUsers
}

/** Counts a call against its limit and tells the caller where it stands; refuses one too many with `rate_limited`. */
export function limit(context: HttpContext, operation: Operation, call: Omit<Call, 'headers'>): void {
  const standing = policyOf(operation)?.({ ...call, headers: headersOf(context.env.event) })
  if (standing === undefined) return
  Object.assign(context.env.headers, {
    'ratelimit-limit': String(standing.limit),
    'ratelimit-remaining': String(standing.remaining),
    'ratelimit-reset': String(standing.resetSeconds),
  })
  const { retryAfterSeconds } = standing
  if (retryAfterSeconds > 0) throw platformError('rate_limited', { retryAfterSeconds })
}
