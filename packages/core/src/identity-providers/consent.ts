import { type ErrorDetail } from '@platform/contract/common'
import { createHash } from 'node:crypto'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create, orThrow, patch } from '../db/table.ts'
import { platformError } from '../error.ts'
import { newSecret, sha256 } from '../id.ts'
import { addressError } from './url.ts'
import { ownProvider } from './manage.ts'
import { consentRedirectUri, issuerOf, publicUrl } from './provider.ts'
import { type ProviderRecord } from './record.ts'
import { OutboundError } from '../outbound/outbound.ts'

/** Requests consent from a provider's operator. The response: `consent-callback.ts`. */

const requestMs = 10 * 60_000

/**
 * The URL of a consent request for a browser, valid for ten minutes and one response. Three calls, and discovery for
 * providers other than Entra ID. Throws `consent_not_applicable`, and `idp_config_invalid` if discovery fails.
 */
export async function request(caller: Caller, providerId: string): Promise<{ url: string }> {
  const row = await ownProvider(caller, providerId)
  if (row.type === 'LDAP') throw platformError('consent_not_applicable')
  const state = newSecret()
  const expiresAtMs = now() + requestMs
  const asked = { providerId: row.id, clientId: row.settings.clientId ?? '', expiresAtMs }
  const answer = { url: await addressOf(row, consentRedirectUri(await publicUrl()), state) }
  const pending = { set: { consent: 'Pending', updatedAtMs: now() }, add: { revision: 1 } }
  await commit(caller, {
    writes: [
      create(keys.consentRequest(sha256(state)), { ...asked, ttl: Math.ceil(expiresAtMs / 1000) }),
      orThrow(patch(keys.identityProvider(row.id), pending), 'identity_provider_not_found'),
    ],
    answer,
    audit: { action: 'identity_provider.consent', resource: row.id, detail: row.displayName },
  })
  return answer
}

async function addressOf(row: ProviderRecord, returnTo: string, state: string): Promise<string> {
  const { clientId = '', scopes = [] } = row.settings
  const common = { client_id: clientId, scope: scopes.join(' '), redirect_uri: returnTo, state }
  if (row.type === 'CloudDirectory') return withParameters(`${issuerOf(row)}/adminconsent`, common)
  return withParameters(await authorizationEndpoint(row), {
    ...common,
    response_type: 'code',
    prompt: 'consent',
    // Some providers require PKCE. The returned code is discarded and unusable for others.
    code_challenge: createHash('sha256').update(newSecret()).digest('base64url'),
    code_challenge_method: 'S256',
  })
}

function withParameters(address: string, parameters: Record<string, string>): string {
  const url = new URL(address)
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}

async function authorizationEndpoint(row: ProviderRecord): Promise<string> {
  const { cachedIssuer } = await import('./oidc/client.ts')
  try {
    const { authorization_endpoint: endpoint } = (await cachedIssuer(row)).metadata
    if (endpoint !== undefined) return endpoint
  } catch (cause) {
    throw platformError('idp_config_invalid', { details: [whyUnknown(row, cause)] }, { cause })
  }
  throw platformError('idp_config_invalid', { details: [whyUnknown(row)] })
}

/** Discloses only one error code about addresses near the platform. */
function whyUnknown({ type }: ProviderRecord, cause?: unknown): ErrorDetail {
  const code = cause instanceof OutboundError ? cause.problem : 'discovery_failed'
  const field = type === 'OpenSourceIdp' ? 'baseUrl' : 'issuer'
  return addressError(field, code, 'has no known consent address; run the provider test')
}
