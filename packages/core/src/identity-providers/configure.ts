import type { Provider, ProviderRequest } from '@platform/contract/identity'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { orThrow, replace, upsert } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { limitReachedError, platformError } from '../error.ts'
import { derivedId, newSecret, sha256 } from '../id.ts'
import { publicUrl, secretOf } from './provider.ts'
import { parseProvider, type ProviderRecord, type ProviderSecret } from './record.ts'
import { type Configuration, parseConfiguration, defaultDisplayName, requiredError } from './settings.ts'
import { providerItem, providerView } from './view.ts'
import { parseOrganisation } from '../accounts/organisation.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { createSecret } from '../aws/secrets.ts'
import { deleteOrphanQuietly, markOrphaned, adopt } from './orphaned-secrets.ts'
import { reauthorize } from '../accounts/current-rights.ts'
import { checkGrantable } from '../accounts/delegation.ts'

export const providerLimit = 50

/** Adds a provider, or replaces the settings of the one of the same type and location; an omitted secret is kept. */
export async function configure(caller: Caller, request: ProviderRequest): Promise<Provider> {
  const configuration = parseConfiguration(request)
  const portalUrl = await publicUrl()
  let secretName: string | undefined
  try {
    const record = await retryOnConflict(async () => {
      const { id, before } = await readCurrent(caller, request, configuration)
      secretName ??= configuration.secret && (await storeNewSecret(id, configuration.secret))
      return tryCommit(caller, before, newRecord(caller, id, { request, configuration, before, secretName }), portalUrl)
    })
    return providerView(record, portalUrl)
  } catch (error) {
    // The commit may have succeeded despite the error. A secret that is in use has no marker, so it is not deleted.
    if (secretName !== undefined) await deleteOrphanQuietly(secretName)
    throw error
  }
}

async function readCurrent(
  caller: Caller,
  request: ProviderRequest,
  { location, secret, secretField, errors }: Configuration,
) {
  const { organisationId } = caller
  const id = derivedId('idp', 0, organisationId, request.type, location ?? '')
  const itemKeys = [keys.organisation(organisationId), keys.identityProvider(id)]
  const [user, organisation, item] = await reauthorize(caller, ['platform:admin'], itemKeys)
  const before = item && parseProvider(item)
  const keepsSecret =
    secret === undefined && before !== undefined && (await secretOf(before))[secretField] !== undefined
  const details = [...errors, ...(keepsSecret || secret !== undefined ? [] : [requiredError(secretField)])]
  if (details.length > 0) throw platformError('idp_config_invalid', { details: details.slice(0, 50) })

  // Providers create users, so their role mappings grant roles.
  const isPlatform = organisation !== undefined && parseOrganisation(organisation).isPlatform
  checkGrantable(grantedRoles(request), user, { organisationId, isOwn: true, isPlatform })
  return { id, before }
}

const grantedRoles = ({ roleMappings = [], defaultRole = 'Viewer' }: ProviderRequest): string[] => [
  ...new Set([defaultRole, ...roleMappings.map(({ role }) => role)]),
]

/** Creates a secret that is marked as orphaned until a provider's record refers to it. */
async function storeNewSecret(providerId: string, secret: ProviderSecret): Promise<string> {
  const name = `${config.PLAT_SECRET_IDENTITY_PREFIX}/${providerId}/${sha256(newSecret()).slice(0, 16)}`
  await transact([markOrphaned(name)])
  await createSecret(name, JSON.stringify(secret))
  return name
}

interface RecordParts {
  request: ProviderRequest
  configuration: Configuration
  before: ProviderRecord | undefined
  secretName: string | undefined
}

function newRecord(
  { organisationId }: Caller,
  id: string,
  { request, configuration, before, secretName }: RecordParts,
): ProviderRecord {
  const { type, displayName, enabled = true, roleMappings = [], defaultRole = 'Viewer' } = request
  const { settings } = configuration
  // A consent applies to one client id only.
  const consent = before?.settings.clientId === settings.clientId ? before?.consent : undefined
  const nowMs = now()
  return {
    id,
    organisationId,
    type,
    displayName: displayName ?? defaultDisplayName(type, settings),
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

async function tryCommit(
  caller: Caller,
  before: ProviderRecord | undefined,
  record: ProviderRecord,
  portalUrl: string,
): Promise<ProviderRecord | undefined> {
  const { id, type, displayName, organisationId } = record
  const isNewSecret = record.secretName !== before?.secretName
  const isUnchanged = before && { revision: { is: before.revision }, secretName: { is: before.secretName } }
  const countWrite = upsert(
    keys.identityProviderCount(organisationId),
    { add: { count: 1 } },
    { count: { isNot: providerLimit } },
  )
  const failure = await commit(caller, {
    writes: [
      replace(keys.identityProvider(id), providerItem(record), isUnchanged ?? { pk: { absent: true } }),
      ...(isNewSecret ? [orThrow(adopt(record.secretName), 'conflict')] : []),
      ...(before === undefined ? [orThrow(countWrite, limitReachedError(providerLimit, 'identity providers'))] : []),
      ...(before !== undefined && isNewSecret ? [markOrphaned(before.secretName)] : []),
    ],
    response: providerView(record, portalUrl),
    audit: { action: 'identity_provider.configure', resource: id, detail: auditDetail(record, before) },
    events: [{ name: 'identity.provider_configured', subject: id, data: { providerId: id, type, displayName } }],
  })
  if (failure) return undefined
  if (before !== undefined && isNewSecret) await deleteOrphanQuietly(before.secretName)
  return record
}

function auditDetail(
  { type, displayName, isEnabled, secretName, ...record }: ProviderRecord,
  before?: ProviderRecord,
): string {
  const { settings, defaultRole, roleMappings } = record
  const location = settings.url ?? settings.issuer ?? settings.baseUrl ?? settings.tenantId
  const roles = [...new Set(roleMappings.map(({ role }) => role))]
  return [
    `${before === undefined ? 'added' : 'changed'} ${type} ${displayName} (${location})`,
    ...(isEnabled ? [] : ['disabled']),
    ...(before === undefined || secretName === before.secretName ? [] : ['new secret']),
    `roles ${[defaultRole, ...roles].join(', ')}`,
  ].join('; ')
}
