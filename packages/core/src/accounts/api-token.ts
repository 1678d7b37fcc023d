import { type ApiToken, type ApiTokenCreation, apiTokenLimit, type CreatedApiToken } from '@platform/contract/api-token'
import { permissions as allPermissions, type Permission } from '@platform/contract/permission'
import { type ApiTokenRecord, permissionsIn, parseApiToken } from './api-token-caller.ts'
import type { OrganisationSettings } from '@platform/contract/organisation'
import { parseSettings } from './organisation-settings.ts'
import type { Caller } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { iso, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { create as creation, getConsistent, patch, remove as removal } from '../db/table.ts'
import { limitReachedError, platformError, validationFailedError } from '../error.ts'
import { isId, newId, newSecret, sha256 } from '../id.ts'
import { retryOnConflict } from '../db/offset-list.ts'
import { type CurrentRights, reauthorize } from './current-rights.ts'
import { find, userUnchanged } from './user.ts'

/** The record of a user lists the ids of the user's API tokens, so that the removal of the user also removes the tokens. */

const isoOrNull = (ms: number | undefined): string | null => (ms === undefined ? null : iso(ms))

const view = (record: ApiTokenRecord): ApiToken => ({
  id: record.id,
  name: record.name,
  permissions: permissionsIn(record, allPermissions),
  expiresAt: isoOrNull(record.expiresAtMs),
  createdAt: iso(record.createdAtMs),
  lastUsedAt: isoOrNull(record.lastUsedAtMs),
})

export async function list({ organisationId, userId }: Caller): Promise<{ items: ApiToken[] }> {
  const user = await find(organisationId, userId)
  if (user === undefined) throw platformError('unauthenticated')
  const newestIds = [...user.tokenIds].toSorted().toReversed()
  const items = await getConsistent(newestIds.map(keys.apiToken))
  return { items: items.filter((item) => item !== undefined).map((item) => view(parseApiToken(item))) }
}

/** Only this response contains the token's text; the token's record contains a hash of the secret. */
export const create = (caller: Caller, request: ApiTokenCreation): Promise<CreatedApiToken> =>
  retryOnConflict(async () => {
    const [callerRights, organisation] = await reauthorize(caller, [], [keys.organisation(caller.organisationId)])
    return tryCreate(caller, request, callerRights, parseSettings(organisation))
  })

async function tryCreate(
  caller: Caller,
  { name, expiresAt, permissions }: ApiTokenCreation,
  { user, rights }: CurrentRights,
  settings: OrganisationSettings,
): Promise<CreatedApiToken | undefined> {
  const tokenCount = user.tokenIds.size
  if (tokenCount >= apiTokenLimit) throw limitReachedError(apiTokenLimit, 'API tokens of one user', tokenCount)
  const { userId, organisationId } = caller
  const secret = newSecret()
  const id = newId('tok')
  const grantedPermissions = permissions === undefined ? [...rights] : checkGrantable(permissions, rights)
  const times = { createdAtMs: now(), expiresAtMs: expiryOf(expiresAt, settings) }
  const record = { id, userId, organisationId, name, hash: sha256(secret), permissions: grantedPermissions, ...times }
  const response = { ...view(record), token: `plat_${id.slice('tok_'.length)}_${secret}` }
  const change = { add: { tokenIds: new Set([id]), version: 1 } }
  const failure = await commit(caller, {
    writes: [
      patch(keys.user(organisationId, userId), change, userUnchanged(user)),
      creation(keys.apiToken(id), record),
    ],
    response,
    audit: { action: 'token.create', resource: id, detail: name },
    events: [{ name: 'token.created', subject: id, data: { userId, tokenId: id, name } }],
  })
  return failure === undefined ? response : undefined
}

const dayMs = 86_400_000

/** Returns undefined if the token never expires. */
function expiryOf(
  expiry: string | null | undefined,
  { maxTokenLifetimeDays, defaultTokenLifetimeDays }: OrganisationSettings,
): number | undefined {
  const maxDays = maxTokenLifetimeDays ?? Infinity
  const defaultMs = now() + Math.min(maxDays, defaultTokenLifetimeDays ?? Infinity) * dayMs
  const expiresAtMs = expiry === undefined ? defaultMs : expiry === null ? Infinity : Date.parse(expiry)
  if (expiresAtMs <= now()) throw invalidExpiryError('not_in_future', 'must be in the future')
  if (expiresAtMs > now() + maxDays * dayMs)
    throw invalidExpiryError('too_late', `must be at most ${maxDays} days from now, the maximum of the organisation`)
  return expiresAtMs === Infinity ? undefined : expiresAtMs
}

const invalidExpiryError = (code: string, message: string) =>
  validationFailedError([{ in: 'body', path: '/expiresAt', code, message }])

function checkGrantable(permissions: readonly Permission[], rights: ReadonlySet<Permission>): Permission[] {
  const message = 'must be a permission of the user'
  const details = permissions.flatMap((permission, index) =>
    rights.has(permission) ? [] : [{ in: 'body' as const, path: `/permissions/${index}`, code: 'not_held', message }],
  )
  const install = permissions.indexOf('modules:install')
  if (install >= 0 && !permissions.includes('platform:admin')) {
    const requirement = 'requires platform:admin; add it, or remove modules:install'
    details.push({ in: 'body', path: `/permissions/${install}`, code: 'requires_platform_admin', message: requirement })
  }
  if (details.length > 0) throw validationFailedError(details)
  return [...permissions]
}

export async function remove(caller: Caller, tokenId: string): Promise<void> {
  if (!isId('tok', tokenId)) throw platformError('token_not_found')
  await retryOnConflict(() => tryRemove(caller, tokenId))
}

async function tryRemove(caller: Caller, tokenId: string): Promise<true | undefined> {
  const { organisationId, userId } = caller
  const [{ user }] = await reauthorize(caller, [])
  if (!user.tokenIds.has(tokenId)) throw platformError('token_not_found')
  const change = { drop: { tokenIds: new Set([tokenId]) }, add: { version: 1 } }
  const failure = await commit(caller, {
    writes: [patch(keys.user(organisationId, userId), change, userUnchanged(user)), removal(keys.apiToken(tokenId))],
    audit: { action: 'token.delete', resource: tokenId },
  })
  return failure === undefined ? true : undefined
}
