import type { ErrorDetail } from '@platform/contract/common'
import { createHash } from 'node:crypto'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, orThrow, patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { newSecret, sha256 } from '../id.ts'
import { fieldError } from './url.ts'
import { requireProvider } from './manage.ts'
import { consentRedirectUri, issuerOf, publicUrl } from './provider.ts'
import type { ProviderRecord } from './record.ts'
import { OutboundError } from '../outbound/outbound.ts'

const requestTtlMs = 10 * 60_000
const consentScopes = ['openid', 'profile', 'email', 'offline_access']

/** Returns a URL of the provider; the platform accepts one response to it within ten minutes. */
export async function request(caller: Caller, providerId: string): Promise<{ url: string }> {
  const provider = await requireProvider(caller, providerId)
  if (provider.type === 'LDAP') throw platformError('consent_not_applicable')
  const state = newSecret()
  const expiresAtMs = now() + requestTtlMs
  const consentRequest = { providerId: provider.id, clientId: provider.settings.clientId ?? '', expiresAtMs }
  const response = { url: await consentUrl(provider, consentRedirectUri(await publicUrl()), state) }
  const pendingChange = { set: { consent: 'Pending', updatedAtMs: now() }, add: { revision: 1 } }
  await commit(caller, {
    writes: [
      create(keys.consentRequest(sha256(state)), { ...consentRequest, ttl: Math.ceil(expiresAtMs / 1000) }),
      orThrow(patch(keys.identityProvider(provider.id), pendingChange), 'identity_provider_not_found'),
    ],
    response,
    audit: { action: 'identity_provider.consent', resource: provider.id, detail: provider.displayName },
  })
  return response
}

async function consentUrl(provider: ProviderRecord, redirectUri: string, state: string): Promise<string> {
  const { clientId = '', scopes = consentScopes } = provider.settings
  const commonParameters = { client_id: clientId, scope: scopes.join(' '), redirect_uri: redirectUri, state }
  if (provider.type === 'CloudDirectory') return withQuery(`${issuerOf(provider)}/adminconsent`, commonParameters)
  return withQuery(await authorizationEndpoint(provider), {
    ...commonParameters,
    response_type: 'code',
    prompt: 'consent',
    // Some providers require PKCE. The returned code is never redeemed and cannot be used by others.
    code_challenge: createHash('sha256').update(newSecret()).digest('base64url'),
    code_challenge_method: 'S256',
  })
}

function withQuery(base: string, parameters: Record<string, string>): string {
  const url = new URL(base)
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}

async function authorizationEndpoint(provider: ProviderRecord): Promise<string> {
  const { cachedIssuer } = await import('./oidc/client.ts')
  try {
    const { authorization_endpoint: endpoint } = (await cachedIssuer(provider)).metadata
    if (endpoint !== undefined) return endpoint
  } catch (cause) {
    throw platformError('idp_config_invalid', { details: [endpointError(provider, cause)] }, { cause })
  }
  throw platformError('idp_config_invalid', { details: [endpointError(provider)] })
}

/** Contains no text of the cause, which could disclose private addresses. */
function endpointError({ type }: ProviderRecord, cause?: unknown): ErrorDetail {
  const code = cause instanceof OutboundError ? cause.problem : 'discovery_failed'
  const field = type === 'OpenSourceIdp' ? 'baseUrl' : 'issuer'
  return fieldError(field, code, 'has no known consent URL; run the provider test')
}
