import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { config } from '@platform/core/config'
import { fault } from '@platform/core/fault'
import { networkOf } from '@platform/core/network'
import type { JsonReader } from './body.ts'
import type { HttpContext } from './context.ts'
import { limiter, type Rate } from './limit.ts'

/** What limits tell calls apart by. */
interface Call {
  caller: Caller | RelayCaller | undefined
  address: string
  json: JsonReader
}

const policy = (rate: Rate, principalOf: (call: Call) => string) => {
  const take = limiter(rate)
  return (call: Call) => take(principalOf(call))
}

const perMinute = (count: number): Rate => ({ perMinute: count, burst: count })
const byAddress = ({ address }: Call): string => networkOf(address)
const byUser = ({ caller }: Call): string => (caller?.kind === 'user' ? (caller.tokenId ?? caller.userId) : '')
const byOrganisation = ({ caller }: Call): string => caller?.organisationId ?? ''
const byRelay = ({ caller }: Call): string => (caller?.kind === 'relay' ? caller.relayId : '')

/** The session that a refresh token says it belongs to: enough to tell calls apart, proven later. Else the address. */
const bySession = ({ json, address }: Call): string => {
  const { refreshToken } = json() as { refreshToken?: unknown }
  return typeof refreshToken === 'string' ? (refreshToken.slice(0, 40).split('.')[0] ?? '') : networkOf(address)
}

const forUsers = policy({ perMinute: config.PLAT_LIMIT_API_PER_MINUTE, burst: config.PLAT_LIMIT_API_BURST }, byUser)
const forRelays = policy(perMinute(6000), byRelay)

const signInSteps = perMinute(config.PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE)
const forBatches = policy(perMinute(config.PLAT_LIMIT_BATCH_PER_MINUTE), byOrganisation)

/** Endpoints with a limit of their own (D34). Failed sign-ins are counted by the platform, not by a process. */
const ownPolicies = new Map([
  ['POST /api/v1/setup/complete', policy(perMinute(config.PLAT_LIMIT_SETUP_PER_MINUTE), byAddress)],
  ['POST /api/v1/relay/enroll', policy(perMinute(config.PLAT_LIMIT_ENROLL_PER_MINUTE), byAddress)],
  ['POST /api/v1/auth/refresh', policy(perMinute(config.PLAT_LIMIT_REFRESH_PER_MINUTE), bySession)],
  // Anybody may ask, and it reads all providers.
  ['GET /api/v1/auth/providers', policy(signInSteps, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/authorize', policy(signInSteps, byAddress)],
  ['GET /api/v1/auth/oidc/{id}/callback', policy(signInSteps, byAddress)],
  ['POST /api/v1/auth/oidc/token', policy(signInSteps, byAddress)],
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
export function limit(context: HttpContext, operation: Operation, call: Call): void {
  const standing = policyOf(operation)?.(call)
  if (standing === undefined) return
  Object.assign(context.env.headers, {
    'ratelimit-limit': String(standing.limit),
    'ratelimit-remaining': String(standing.remaining),
    'ratelimit-reset': String(standing.resetSeconds),
  })
  const { retryAfterSeconds } = standing
  if (retryAfterSeconds > 0) throw fault('rate_limited', { retryAfterSeconds })
}
