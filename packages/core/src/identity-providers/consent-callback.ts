import { type ConsentCallback } from '@platform/contract/identity'
import * as z from 'zod'
import { type Actor, type Caller, type Origin, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { get, orThrow, patch, remove, type WriteItem } from '../db/table.ts'
import { platformError } from '../error.ts'
import { sha256 } from '../id.ts'
import { allProviders, findProvider, issuerOf, publicUrl } from './provider.ts'
import { type ProviderRecord } from './record.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { reauthorize } from '../accounts/current-rights.ts'

/** Handles the response to a consent request, in the browser of the provider's operator. */

const Request = z.object({ providerId: z.string(), clientId: z.string(), expiresAtMs: z.number() })

/** The codes for the portal. Nothing from outside is passed on. */
type ConsentError =
  | 'tenant_mismatch'
  | 'issuer_mismatch'
  | 'provider_changed'
  | 'provider_error'
  | 'provider_unknown'
  | 'incomplete'
type Verdict = { consent: 'granted' | 'denied' } | { consent: 'error'; error: ConsentError }

/** The response, its authorised actor, and the writes that consume it. */
interface Given {
  actor: Actor
  row: ProviderRecord
  /** The client of the consent request. */
  clientId: string | undefined
  spent: readonly WriteItem[]
}

/**
 * Handles a response, authorised by the request's `state` or by a caller with platform:admin; returns the redirect URL.
 * Four calls. Throws `unauthenticated` without authorisation and for a repeated response.
 */
export async function handleConsentCallback(
  answer: ConsentCallback,
  origin: Origin,
  findCaller: () => Promise<Caller | undefined>,
): Promise<string> {
  const portal = await publicUrl()
  return retryOnConflict(async () => {
    const given = (await byState(answer, origin)) ?? (await byCaller(answer, await findCaller()))
    if (given === undefined) return settingsPage(portal, undefined, { consent: 'error', error: 'provider_unknown' })
    const verdict = verdictOf(given, answer)
    return (await conclude(given, verdict)) ? settingsPage(portal, given.row.id, verdict) : undefined
  })
}

async function byState({ state = '' }: ConsentCallback, { address }: Origin): Promise<Given | undefined> {
  const key = keys.consentRequest(sha256(state))
  const item = await get(key)
  const asked = item && Request.parse(item)
  if (asked === undefined || asked.expiresAtMs <= now()) return undefined
  const row = await findProvider(asked.providerId)
  if (row === undefined) return undefined
  const spent = [orThrow(remove(key, { pk: { present: true } }), 'unauthenticated')]
  return { actor: system(row.organisationId, address), row, clientId: asked.clientId, spent }
}

/** Without a state, the response names its provider only by the tenant. */
async function byCaller({ tenant }: ConsentCallback, caller: Caller | undefined): Promise<Given | undefined> {
  if (caller === undefined) throw platformError('unauthenticated')
  await reauthorize(caller, ['platform:admin'])
  const rows = await allProviders()
  const isMeant = (row: ProviderRecord) => row.organisationId === caller.organisationId && isTenant(row, tenant)
  const row = rows.find(isMeant)
  return row && { actor: caller, row, clientId: row.settings.clientId, spent: [] }
}

const isTenant = ({ type, settings }: ProviderRecord, tenant: string | undefined): boolean =>
  type === 'CloudDirectory' && settings.tenantId?.toLowerCase() === tenant?.toLowerCase()

/** Same comparison as at sign-in: a trailing slash after the host is ignored. */
const isIssuer = (row: ProviderRecord, iss: string): boolean =>
  URL.canParse(iss) && new URL(iss).href === new URL(issuerOf(row)).href

/** Error codes by which providers report a denial. */
const denials = new Set(['access_denied', 'permission_denied'])

const failed = (error: ConsentError): Verdict => ({ consent: 'error', error })

function verdictOf({ row, clientId }: Given, { tenant, iss, error, admin_consent, code }: ConsentCallback): Verdict {
  const isCloud = row.type === 'CloudDirectory'
  if (row.settings.clientId !== clientId) return failed('provider_changed')
  if (iss !== undefined && !isIssuer(row, iss)) return failed('issuer_mismatch')
  // A denial may omit the tenant; consent must include it.
  if (isCloud && !(error !== undefined && tenant === undefined) && !isTenant(row, tenant))
    return failed('tenant_mismatch')
  if (error !== undefined) return denials.has(error) ? { consent: 'denied' } : failed('provider_error')
  if (!isCloud) return code === undefined ? failed('incomplete') : { consent: 'granted' }
  if (admin_consent === undefined) return failed('incomplete')
  return { consent: /^true$/i.test(admin_consent) ? 'granted' : 'denied' }
}

const consents = { granted: 'Granted', denied: 'Denied' } as const

/** False if the provider was changed concurrently. */
async function conclude({ actor, row, spent }: Given, verdict: Verdict): Promise<boolean> {
  const { id: providerId, type, revision } = row
  const { consent } = verdict
  const key = keys.identityProvider(providerId)
  const kept = consent !== 'error' && { set: { consent: consents[consent], updatedAtMs: now() }, add: { revision: 1 } }
  const refusal = await commit(actor, {
    writes: [...spent, ...(kept ? [patch(key, kept, { revision: { is: revision } })] : [])],
    audit: {
      action: 'identity_provider.consent_received',
      resource: providerId,
      detail: consent === 'error' ? verdict.error : consent,
    },
    events: [{ name: 'identity.consent_received', subject: providerId, data: { providerId, type, consent } }],
  })
  return refusal === undefined
}

function settingsPage(portal: string, providerId: string | undefined, verdict: Verdict): string {
  const told = new URLSearchParams({ ...(providerId !== undefined && { provider: providerId }), ...verdict })
  return `${portal}/settings/identity?${told.toString()}`
}
