import type { ProviderTest } from '@platform/contract/identity'
import * as openid from 'openid-client'
import * as z from 'zod'
import { iso, now } from '../../clock.ts'
import { newSecret } from '../../id.ts'
import { issuerOf, publicUrl, redirectUri } from '../provider.ts'
import type { ProviderRecord, ProviderSecret } from '../record.ts'
import { type CachedIssuer, clientOf, discover, issuerMismatchError } from './client.ts'
import { describeFailure, InvalidResponse } from './errors.ts'
import { checkProviderUrl, guardedFetch } from './fetch.ts'

type Check = ProviderTest['checks'][number]

export async function testOidc(provider: ProviderRecord, { clientSecret = '' }: ProviderSecret): Promise<Check[]> {
  const portalUrl = await publicUrl()
  let issuer: CachedIssuer
  try {
    issuer = await discover(provider)
  } catch (error) {
    return [{ name: 'discovery', ok: false, message: describeFailure(error) }]
  }
  const observation: { date?: string | null } = {}
  const checks = [
    { name: 'discovery', ok: true, message: 'The metadata of the issuer are valid.' },
    await check('issuer', 'The issuer is the same in the settings and the metadata.', async () => {
      if (issuer.metadata.issuer !== issuerOf(provider)) throw issuerMismatchError(issuer.metadata.issuer, provider)
    }),
    await check('endpoints', 'The platform may call all endpoints of a sign-in.', async () => checkEndpoints(issuer)),
    await check('algorithms', '', async () => describeAlgorithms(issuer)),
    await check('keys', 'The issuer publishes keys to verify tokens.', () => checkKeys(issuer)),
    await check('client', 'The issuer accepts the client and its secret.', () =>
      checkClient(provider, { issuer, clientSecret, callbackUri: redirectUri(portalUrl, provider.id), observation }),
    ),
  ]
  const issuerMs = Date.parse(observation.date ?? '')
  if (Number.isNaN(issuerMs)) return checks
  return [...checks, await check('clock', 'The clocks of issuer and platform agree.', async () => checkClock(issuerMs))]
}

/** `work` may return a message that replaces `message`. Neither may disclose content of responses. */
async function check(name: string, message: string, work: () => Promise<string | void>): Promise<Check> {
  try {
    return { name, ok: true, message: (await work()) ?? message }
  } catch (error) {
    return { name, ok: false, message: describeFailure(error) }
  }
}

function checkEndpoints({ metadata }: CachedIssuer): void {
  const { authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint, response_types_supported } = metadata
  const requiredEndpoints = { authorization_endpoint, token_endpoint, jwks_uri }
  const missingEndpoints = Object.entries(requiredEndpoints).filter(([, address]) => typeof address !== 'string')
  if (missingEndpoints.length > 0)
    throw new InvalidResponse(`The issuer's metadata lack ${missingEndpoints.map(([name]) => name).join(', ')}.`)
  for (const address of [...Object.values(requiredEndpoints), userinfo_endpoint])
    if (address !== undefined) checkProviderUrl(address)
  const isCodeUnsupported = Array.isArray(response_types_supported) && !response_types_supported.includes('code')
  if (isCodeUnsupported) throw new InvalidResponse('The issuer does not offer the authorization code flow.')
}

const keyTypeByPrefix: Readonly<Record<string, string>> = { RS: 'RSA', PS: 'RSA', ES: 'EC', Ed: 'OKP' }
const acceptedPattern = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/
const rejectedPattern = /^(?:HS(?:256|384|512)|none)$/

/** Returns the matching algorithms of the metadata, which default to RS256. */
function algorithmsOf({ metadata }: CachedIssuer, pattern: RegExp): string[] {
  const { id_token_signing_alg_values_supported: listed } = metadata
  const names: unknown[] = Array.isArray(listed) ? listed : ['RS256']
  return [...new Set(names)].filter((name) => typeof name === 'string' && pattern.test(name)).map(String)
}

/** The metadata do not say which algorithm the issuer uses for this client. */
function describeAlgorithms(issuer: CachedIssuer): string {
  const [acceptedNames, rejectedNames] = [algorithmsOf(issuer, acceptedPattern), algorithmsOf(issuer, rejectedPattern)]
  if (acceptedNames.length === 0)
    throw new InvalidResponse(
      `The issuer signs ID tokens with ${rejectedNames.join(', ') || 'no known algorithm'}. Configure a public-key algorithm there, such as RS256 or ES256.`,
    )
  const warning = rejectedNames.length === 0 ? '' : ` Tokens with ${rejectedNames.join(', ')} are rejected.`
  return `The issuer can sign ID tokens with ${acceptedNames.join(', ')}.${warning}`
}

/** ID tokens issued more than a minute in the future are rejected. */
const maxClockDifferenceMs = 60_000

function checkClock(issuerMs: number): void {
  const platformMs = now()
  const differenceMs = issuerMs - platformMs
  if (Math.abs(differenceMs) <= maxClockDifferenceMs) return
  const relation = differenceMs > 0 ? 'ahead of' : 'behind'
  throw new InvalidResponse(
    `The issuer's clock is ${Math.round(Math.abs(differenceMs) / 1000)} seconds ${relation} the platform's (${iso(platformMs)}), so ID tokens may be rejected.`,
  )
}

const KeySet = z.object({ keys: z.array(z.object({ kty: z.string(), use: z.unknown() })) })

async function checkKeys(issuer: CachedIssuer): Promise<void> {
  const headers = { accept: 'application/json' }
  const response = await guardedFetch(issuer.metadata.jwks_uri ?? '', {
    method: 'GET',
    headers,
    body: undefined,
    redirect: 'manual',
  })
  const { keys } = KeySet.parse(await response.json())
  const types = algorithmsOf(issuer, acceptedPattern).map((name) => keyTypeByPrefix[name.slice(0, 2)])
  const isUsable = keys.some(({ kty, use = 'sig' }) => types.includes(kty) && use === 'sig')
  if (!isUsable) throw new InvalidResponse('The issuer publishes no key for an accepted algorithm.')
}

interface ClientCheck {
  issuer: CachedIssuer
  clientSecret: string
  callbackUri: string
  /** Receives the `Date` header of the response to a POST, which is never cached. */
  observation: { date?: string | null }
}

/** Sends a code that cannot exist, because a provider rejects the code only after it has accepted the client. */
async function checkClient(
  provider: ProviderRecord,
  { issuer, clientSecret, callbackUri, observation }: ClientCheck,
): Promise<void> {
  const request = { code: newSecret(), redirect_uri: callbackUri, code_verifier: newSecret() }
  const client = clientOf(provider, issuer, clientSecret)
  client[openid.customFetch] = async (...call) => {
    const response = await guardedFetch(...call)
    observation.date = response.headers.get('date')
    return response
  }
  try {
    await openid.genericGrantRequest(client, 'authorization_code', request)
  } catch (error) {
    if (error instanceof openid.ResponseBodyError && error.error === 'invalid_grant') return
    throw error
  }
  throw new InvalidResponse('The issuer accepts any code.')
}
