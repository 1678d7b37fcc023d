import type { ConsentCallback } from '@platform/contract/identity'
import * as z from 'zod'
import { type Actor, type Caller, type Origin, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, orThrow, patch, remove, type WriteItem } from '../db/table.ts'
import { platformError } from '../error.ts'
import { sha256 } from '../id.ts'
import { allProviders, findProvider, issuerOf, publicUrl } from './provider.ts'
import type { ProviderRecord } from './record.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { reauthorize } from '../accounts/current-rights.ts'

const ConsentRequest = z.object({ providerId: z.string(), clientId: z.string(), expiresAtMs: z.number() })

/** The error in the redirect to the portal, which never contains input of the request. */
type ConsentError =
  | 'tenant_mismatch'
  | 'issuer_mismatch'
  | 'provider_changed'
  | 'provider_error'
  | 'provider_unknown'
  | 'incomplete'
type ConsentOutcome = { consent: 'granted' | 'denied' } | { consent: 'error'; error: ConsentError }

interface ConsentContext {
  actor: Actor
  provider: ProviderRecord
  /** The client id of the consent request, or the provider's current one if the response has no valid state. */
  clientId: string | undefined
  consumeWrites: readonly WriteItem[]
}

/**
 * Requires the `state` of a consent request, or a caller with platform:admin. Returns the URL to redirect the browser
 * to. Throws `unauthenticated` if the state is unknown, expired or already used, and there is no caller.
 */
export async function handleConsentCallback(
  callback: ConsentCallback,
  origin: Origin,
  findCaller: () => Promise<Caller | undefined>,
): Promise<string> {
  const portalUrl = await publicUrl()
  return retryOnConflict(async () => {
    const context = (await findByState(callback, origin)) ?? (await findByCaller(callback, await findCaller()))
    if (context === undefined)
      return settingsPage(portalUrl, undefined, { consent: 'error', error: 'provider_unknown' })
    const outcome = outcomeOf(context, callback)
    return (await storeOutcome(context, outcome)) ? settingsPage(portalUrl, context.provider.id, outcome) : undefined
  })
}

async function findByState({ state = '' }: ConsentCallback, { address }: Origin): Promise<ConsentContext | undefined> {
  const key = keys.consentRequest(sha256(state))
  const item = await get(key)
  const request = item && ConsentRequest.parse(item)
  if (request === undefined || request.expiresAtMs <= now()) return undefined
  const provider = await findProvider(request.providerId)
  if (provider === undefined) return undefined
  const consumeWrites = [orThrow(remove(key, { pk: { present: true } }), 'unauthenticated')]
  return { actor: system(provider.organisationId, address), provider, clientId: request.clientId, consumeWrites }
}

/** Finds the provider by the tenant in a response without a valid state. */
async function findByCaller(
  { tenant }: ConsentCallback,
  caller: Caller | undefined,
): Promise<ConsentContext | undefined> {
  if (caller === undefined) throw platformError('unauthenticated')
  await reauthorize(caller, ['platform:admin'])
  const provider = (await allProviders()).find(
    (candidate) => candidate.organisationId === caller.organisationId && isTenant(candidate, tenant),
  )
  return provider && { actor: caller, provider, clientId: provider.settings.clientId, consumeWrites: [] }
}

const isTenant = ({ type, settings }: ProviderRecord, tenant: string | undefined): boolean =>
  type === 'CloudDirectory' && settings.tenantId?.toLowerCase() === tenant?.toLowerCase()

/** Ignores a trailing slash after the host, as the sign-in does. */
const isIssuer = (provider: ProviderRecord, iss: string): boolean =>
  URL.canParse(iss) && new URL(iss).href === new URL(issuerOf(provider)).href

const denialCodes = new Set(['access_denied', 'permission_denied'])

const errorOutcome = (error: ConsentError): ConsentOutcome => ({ consent: 'error', error })

function outcomeOf(
  { provider, clientId }: ConsentContext,
  { tenant, iss, error, admin_consent, code }: ConsentCallback,
): ConsentOutcome {
  const isCloud = provider.type === 'CloudDirectory'
  if (provider.settings.clientId !== clientId) return errorOutcome('provider_changed')
  if (iss !== undefined && !isIssuer(provider, iss)) return errorOutcome('issuer_mismatch')
  // A denial may omit the tenant; a consent must include it.
  if (isCloud && !(error !== undefined && tenant === undefined) && !isTenant(provider, tenant))
    return errorOutcome('tenant_mismatch')
  if (error !== undefined) return denialCodes.has(error) ? { consent: 'denied' } : errorOutcome('provider_error')
  if (!isCloud) return code === undefined ? errorOutcome('incomplete') : { consent: 'granted' }
  if (admin_consent === undefined) return errorOutcome('incomplete')
  return { consent: /^true$/i.test(admin_consent) ? 'granted' : 'denied' }
}

const consentStates = { granted: 'Granted', denied: 'Denied' } as const

async function storeOutcome(
  { actor, provider, consumeWrites }: ConsentContext,
  outcome: ConsentOutcome,
): Promise<boolean> {
  const { id: providerId, type, revision } = provider
  const { consent } = outcome
  const key = keys.identityProvider(providerId)
  const change = consent !== 'error' && {
    set: { consent: consentStates[consent], updatedAtMs: now() },
    add: { revision: 1 },
  }
  const failure = await commit(actor, {
    writes: [...consumeWrites, ...(change ? [patch(key, change, { revision: { is: revision } })] : [])],
    audit: {
      action: 'identity_provider.consent_received',
      resource: providerId,
      detail: consent === 'error' ? outcome.error : consent,
    },
    events: [{ name: 'identity.consent_received', subject: providerId, data: { providerId, type, consent } }],
  })
  return failure === undefined
}

function settingsPage(portalUrl: string, providerId: string | undefined, outcome: ConsentOutcome): string {
  const parameters = new URLSearchParams({ ...(providerId !== undefined && { provider: providerId }), ...outcome })
  return `${portalUrl}/settings/identity?${parameters.toString()}`
}
