import { type ProviderTest } from '@platform/contract/identity'
import * as openid from 'openid-client'
import * as z from 'zod'
import { newSecret } from '../../id.ts'
import { publicUrl, redirectUri } from '../provider.ts'
import { type ProviderRecord, type ProviderSecret } from '../record.ts'
import { clientOf, discover, IssuerMismatch, type CachedIssuer } from './client.ts'
import { findOutboundError } from './errors.ts'
import { checkProviderUrl, guardedFetch } from './fetch.ts'
import { type OutboundErrorKind } from '../../outbound/outbound.ts'

type Check = ProviderTest['checks'][number]

export async function testOidc(provider: ProviderRecord, { clientSecret = '' }: ProviderSecret): Promise<Check[]> {
  const portalUrl = await publicUrl()
  let issuer: CachedIssuer
  try {
    issuer = await discover(provider)
  } catch (error) {
    return [{ name: 'discovery', ok: false, message: messageOf(error) }]
  }
  return [
    { name: 'discovery', ok: true, message: 'The metadata of the issuer are valid.' },
    await check('endpoints', 'The platform may call all endpoints of a sign-in.', async () => checkEndpoints(issuer)),
    await check('keys', 'The issuer publishes keys to verify tokens.', () => checkKeys(issuer)),
    await check('client', 'The issuer accepts the client and its secret.', () =>
      checkClient(provider, issuer, clientSecret, redirectUri(portalUrl, provider.id)),
    ),
  ]
}

async function check(name: string, message: string, work: () => Promise<void>): Promise<Check> {
  try {
    await work()
    return { name, ok: true, message }
  } catch (error) {
    return { name, ok: false, message: messageOf(error) }
  }
}

/** `message` must not disclose content of responses. */
class CheckError extends Error {
  override readonly name = 'CheckError'
}

function checkEndpoints({ metadata }: CachedIssuer): void {
  const { authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint, response_types_supported } = metadata
  const required = { authorization_endpoint, token_endpoint, jwks_uri }
  const missing = Object.entries(required).filter(([, address]) => typeof address !== 'string')
  if (missing.length > 0)
    throw new CheckError(`The issuer's metadata lack ${missing.map(([name]) => name).join(', ')}.`)
  for (const address of [...Object.values(required), userinfo_endpoint])
    if (address !== undefined) checkProviderUrl(address)
  const isCodeUnsupported = Array.isArray(response_types_supported) && !response_types_supported.includes('code')
  if (isCodeUnsupported) throw new CheckError('The issuer does not offer the authorization code flow.')
}

const KeySet = z.object({ keys: z.array(z.object({ kty: z.string() })) })

async function checkKeys({ metadata }: CachedIssuer): Promise<void> {
  const headers = { accept: 'application/json' }
  const response = await guardedFetch(metadata.jwks_uri ?? '', {
    method: 'GET',
    headers,
    body: undefined,
    redirect: 'manual',
  })
  const { keys } = KeySet.parse(await response.json())
  const isUsable = keys.some(({ kty }) => ['RSA', 'EC', 'OKP'].includes(kty))
  if (!isUsable) throw new CheckError('The issuer publishes no usable key.')
}

/** Sends a code that cannot exist, because a provider rejects the code only after it has accepted the client. */
async function checkClient(
  provider: ProviderRecord,
  issuer: CachedIssuer,
  secret: string,
  callbackUri: string,
): Promise<void> {
  const request = { code: newSecret(), redirect_uri: callbackUri, code_verifier: newSecret() }
  try {
    await openid.genericGrantRequest(clientOf(provider, issuer, secret), 'authorization_code', request)
  } catch (error) {
    const code = error instanceof openid.ResponseBodyError ? error.error : ''
    if (code === 'invalid_grant') return
    const isClientError = code === 'invalid_client' || error instanceof openid.WWWAuthenticateChallengeError
    throw isClientError ? new CheckError('The issuer rejects the client or its secret.') : error
  }
  throw new CheckError('The issuer accepts any code.')
}

const outboundMessages: Record<OutboundErrorKind, string> = {
  url_not_allowed: 'The platform may not call an address of the issuer: https is required.',
  address_not_allowed: 'The platform may not call an address of the issuer.',
  name_not_resolved: 'A host name of the issuer does not resolve.',
  certificate_not_trusted: 'The certificate of the issuer is not trusted.',
  connection_failed: 'The connection to the issuer failed.',
  timed_out: 'The issuer did not respond in time.',
}

function messageOf(error: unknown): string {
  const outboundError = findOutboundError(error)
  if (outboundError !== undefined) return outboundMessages[outboundError.problem]
  if (error instanceof CheckError) return error.message
  const isMismatch = error instanceof IssuerMismatch || codeOf(error) === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED'
  if (isMismatch)
    return 'The metadata are for another issuer. Check the spelling; for a cloud directory, use the tenant id.'
  return 'The response is not from a valid OpenID provider.'
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)
