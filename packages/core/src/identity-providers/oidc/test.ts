import { type ProviderTest } from '@platform/contract/identity'
import * as openid from 'openid-client'
import * as z from 'zod'
import { newSecret } from '../../id.ts'
import { publicUrl, redirectUri } from '../provider.ts'
import { type ProviderRecord, type ProviderSecret } from '../record.ts'
import { clientOf, discover, IssuerMismatch, type CachedIssuer } from './client.ts'
import { outboundFailureOf } from './errors.ts'
import { checkProviderUrl, guardedFetch } from './fetch.ts'
import { type OutboundErrorKind } from '../../outbound/outbound.ts'

/** Tests an OpenID provider for an operator. */

type Check = ProviderTest['checks'][number]

/** Four checks, each with one request to the provider. One call. */
export async function testOidc(provider: ProviderRecord, { clientSecret = '' }: ProviderSecret): Promise<Check[]> {
  const portal = await publicUrl()
  let known: CachedIssuer
  try {
    known = await discover(provider)
  } catch (error) {
    return [{ name: 'discovery', ok: false, message: messageOf(error) }]
  }
  return [
    { name: 'discovery', ok: true, message: 'The issuer describes itself.' },
    await check('endpoints', 'All addresses of a sign-in may be called.', async () => checkEndpoints(known)),
    await check('keys', 'The issuer publishes keys that tokens can be verified with.', () => checkKeys(known)),
    await check('client', 'The issuer accepts the client and its secret.', () =>
      checkClient(provider, known, clientSecret, redirectUri(portal, provider.id)),
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

/** A message for the operator. It discloses no response content. */
class Finding extends Error {
  override readonly name = 'Finding'
}

function checkEndpoints({ metadata }: CachedIssuer): void {
  const { authorization_endpoint, token_endpoint, jwks_uri, userinfo_endpoint, response_types_supported } = metadata
  const needed = { authorization_endpoint, token_endpoint, jwks_uri }
  const missing = Object.entries(needed).filter(([, address]) => typeof address !== 'string')
  if (missing.length > 0) throw new Finding(`The issuer's metadata lack ${missing.map(([name]) => name).join(', ')}.`)
  for (const address of [...Object.values(needed), userinfo_endpoint])
    if (address !== undefined) checkProviderUrl(address)
  const isCodeRefused = Array.isArray(response_types_supported) && !response_types_supported.includes('code')
  if (isCodeRefused) throw new Finding('The issuer does not offer the authorization code flow.')
}

const KeySet = z.object({ keys: z.array(z.object({ kty: z.string() })) })

async function checkKeys({ metadata }: CachedIssuer): Promise<void> {
  const headers = { accept: 'application/json' }
  const answer = await guardedFetch(metadata.jwks_uri ?? '', {
    method: 'GET',
    headers,
    body: undefined,
    redirect: 'manual',
  })
  const { keys } = KeySet.parse(await answer.json())
  const isUsable = keys.some(({ kty }) => ['RSA', 'EC', 'OKP'].includes(kty))
  if (!isUsable) throw new Finding('The issuer publishes no usable key.')
}

/** Sends a code that cannot exist: the provider rejects the code only after it accepts the client. */
async function checkClient(provider: ProviderRecord, known: CachedIssuer, secret: string, uri: string): Promise<void> {
  const request = { code: newSecret(), redirect_uri: uri, code_verifier: newSecret() }
  try {
    await openid.genericGrantRequest(clientOf(provider, known, secret), 'authorization_code', request)
  } catch (error) {
    const refusal = error instanceof openid.ResponseBodyError ? error.error : ''
    if (refusal === 'invalid_grant') return
    const isClient = refusal === 'invalid_client' || error instanceof openid.WWWAuthenticateChallengeError
    throw isClient ? new Finding('The issuer rejects the client or its secret.') : error
  }
  throw new Finding('The issuer accepts any code.')
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
  const failure = outboundFailureOf(error)
  if (failure !== undefined) return outboundMessages[failure.problem]
  if (error instanceof Finding) return error.message
  const isMismatch = error instanceof IssuerMismatch || codeOf(error) === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED'
  if (isMismatch) return 'The issuer has another name. Check its spelling; for a cloud directory, use the tenant id.'
  return 'The response is not from a valid OpenID provider.'
}

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)
