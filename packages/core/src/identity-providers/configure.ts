import { type Provider, type ProviderRequest } from '@platform/contract/identity'
import { type Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { orThrow, replace, upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { platformError } from '../error.ts'
import { derivedId, newSecret, sha256 } from '../id.ts'
import { publicUrl, secretOf } from './provider.ts'
import { parseProvider, type ProviderRecord, type ProviderSecret } from './record.ts'
import { type Configuration, configurationOf, nameFrom, required } from './settings.ts'
import { providerItem, providerView } from './view.ts'
import { parseOrganisation } from '../accounts/organisation.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { createSecret } from '../aws/secrets.ts'
import { deleteOrphanQuietly, markOrphaned, adopt } from './orphaned-secrets.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { checkGrantable } from '../accounts/delegation.ts'

/** Adds and changes identity providers. */

export const providerLimit = 50

/**
 * Adds a provider, or replaces the settings of the one with the same type and location; an omitted secret is kept.
 * Three calls without collisions, and one to Secrets Manager; a new secret takes one more call, a replaced one two and
 * one. Throws `idp_config_invalid`, `url_not_allowed`, `role_not_grantable` and `limit_reached`.
 */
export async function configure(caller: Caller, request: ProviderRequest): Promise<Provider> {
  const wanted = configurationOf(request)
  const portal = await publicUrl()
  let secretName: string | undefined
  try {
    const row = await retryOnConflict(async () => {
      const { id, before } = await lookAt(caller, request, wanted)
      secretName ??= wanted.secret && (await keepNewSecret(id, wanted.secret))
      return tryConfigure(caller, before, configured(caller, id, { request, wanted, before, secretName }), portal)
    })
    return providerView(row, portal)
  } catch (error) {
    // The change may have been committed after all: a secret in use has no marker and is kept.
    if (secretName !== undefined) await deleteOrphanQuietly(secretName)
    throw error
  }
}

/** The provider's current state, after validation of the request. */
async function lookAt(
  caller: Caller,
  request: ProviderRequest,
  { place, secret, secretField, problems }: Configuration,
) {
  const { organisationId } = caller
  const id = derivedId('idp', 0, organisationId, request.type, place ?? '')
  const wanted = [keys.organisation(organisationId), keys.identityProvider(id)]
  const [who, organisation, item] = await reauthorize(caller, ['platform:admin'], wanted)
  const before = item && parseProvider(item)
  const isKept = secret === undefined && before !== undefined && (await secretOf(before))[secretField] !== undefined
  const details = [...problems, ...(isKept || secret !== undefined ? [] : [required(secretField)])]
  if (details.length > 0) throw platformError('idp_config_invalid', { details: details.slice(0, 50) })

  // Providers create users, so their role mappings grant roles.
  const isPlatform = organisation !== undefined && parseOrganisation(organisation).isPlatform
  checkGrantable(rolesOf(request), who, { organisationId, isOwn: true, isPlatform })
  return { id, before }
}

const rolesOf = ({ roleMappings = [], defaultRole = 'Viewer' }: ProviderRequest): string[] => [
  ...new Set([defaultRole, ...roleMappings.map(({ role }) => role)]),
]

/** Writes a secret under a new name, with an orphan marker until a record refers to it. Returns the name. */
async function keepNewSecret(providerId: string, secret: ProviderSecret): Promise<string> {
  const name = `${config.PLAT_SECRET_IDENTITY_PREFIX}/${providerId}/${sha256(newSecret()).slice(0, 16)}`
  await transact([markOrphaned(name)])
  await createSecret(name, JSON.stringify(secret))
  return name
}

interface Draft {
  request: ProviderRequest
  wanted: Configuration
  before: ProviderRecord | undefined
  secretName: string | undefined
}

function configured(
  { organisationId }: Caller,
  id: string,
  { request, wanted, before, secretName }: Draft,
): ProviderRecord {
  const { type, displayName, enabled = true, roleMappings = [], defaultRole = 'Viewer' } = request
  const { settings } = wanted
  // Consent belongs to one client.
  const consent = before?.settings.clientId === settings.clientId ? before?.consent : undefined
  const nowMs = now()
  return {
    id,
    organisationId,
    type,
    displayName: displayName ?? nameFrom(type, settings),
    isEnabled: enabled,
    settings,
    roleMappings,
    defaultRole,
    ...(consent && { consent }),
    secretName: secretName ?? before?.secretName ?? '',
    createdAtMs: before?.createdAtMs ?? nowMs,
    updatedAtMs: nowMs,
    revision: (before?.revision ?? 0) + 1,
  }
}

/** Undefined if the provider was changed concurrently. */
async function tryConfigure(
  caller: Caller,
  before: ProviderRecord | undefined,
  row: ProviderRecord,
  portal: string,
): Promise<ProviderRecord | undefined> {
  const { id, type, displayName, organisationId } = row
  const isNewSecret = row.secretName !== before?.secretName
  const asRead = before && { revision: { is: before.revision }, secretName: { is: before.secretName } }
  const counted = upsert(
    keys.identityProviderCount(organisationId),
    { add: { count: 1 } },
    { count: { isNot: providerLimit } },
  )
  const refusal = await commit(caller, {
    writes: [
      replace(keys.identityProvider(id), providerItem(row), asRead ?? { pk: { absent: true } }),
      ...(isNewSecret ? [orThrow(adopt(row.secretName), 'conflict')] : []),
      ...(before === undefined ? [orThrow(counted, 'limit_reached')] : []),
      ...(before !== undefined && isNewSecret ? [markOrphaned(before.secretName)] : []),
    ],
    answer: providerView(row, portal),
    audit: { action: 'identity_provider.configure', resource: id, detail: detailOf(row, before) },
    events: [{ name: 'identity.provider_configured', subject: id, data: { providerId: id, type, displayName } }],
  })
  if (refusal) return undefined
  if (before !== undefined && isNewSecret) await deleteOrphanQuietly(before.secretName)
  return row
}

/** For the audit trail: the provider, and the roles that its users may get. */
function detailOf(
  { type, displayName, isEnabled, secretName, ...row }: ProviderRecord,
  before?: ProviderRecord,
): string {
  const { settings, defaultRole, roleMappings } = row
  const where = settings.url ?? settings.issuer ?? settings.baseUrl ?? settings.tenantId
  const roles = [...new Set(roleMappings.map(({ role }) => role))]
  return [
    `${before === undefined ? 'added' : 'changed'} ${type} ${displayName} (${where})`,
    ...(isEnabled ? [] : ['disabled']),
    ...(before === undefined || secretName === before.secretName ? [] : ['new secret']),
    `roles ${[defaultRole, ...roles].join(', ')}`,
  ].join('; ')
}
