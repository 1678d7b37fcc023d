import { timingSafeEqual } from 'node:crypto'
import { type Permission, permissionsOf } from '@platform/contract/permission'
import * as z from 'zod'
import type { Caller } from '../caller.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, tryUpdate } from '../db/table.ts'
import { PlatformError, platformError } from '../error.ts'
import { sha256 } from '../id.ts'
import { log } from '../log.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import { find, isLocal, parseUser, type User, isProviderEnabled, isEnabledProvider } from './user.ts'

/** Every request reads the token from the table, so that revocation takes effect at once. */

const ApiTokenRecord = z.object({
  id: z.string(),
  userId: z.string(),
  organisationId: z.string(),
  name: z.string(),
  hash: z.string(),
  permissions: z.array(z.string()),
  createdAtMs: z.number(),
  expiresAtMs: z.number().optional(),
  /** Rounded down to the hour. */
  lastUsedAtMs: z.number().optional(),
})
export type ApiTokenRecord = z.infer<typeof ApiTokenRecord>

export const parseApiToken = (item: Item): ApiTokenRecord => ApiTokenRecord.parse(item)

export const permissionsIn = (
  { permissions }: Pick<ApiTokenRecord, 'permissions'>,
  candidates: readonly Permission[],
): Permission[] => candidates.filter((permission) => permissions.includes(permission))

const tokenPattern = /^plat_([0-9a-hjkmnp-tv-z]{26})_([\w-]{43})$/

export const isApiToken = (text: string): boolean => text.startsWith('plat_')

// A token's user and provider never change, so their keys are cached. Every request reads the items themselves.
const ownerKeyCache = new BoundedCache<readonly keys.Key[]>(500)

export async function verifyApiToken(text: string): Promise<Caller> {
  const [, ulid = '', secret = ''] = tokenPattern.exec(text) ?? []
  if (secret === '') throw platformError('unauthenticated')
  const tokenId = `tok_${ulid}`
  const cachedKeys = ownerKeyCache.get(tokenId)
  const [item, userItem, providerItem] = await getConsistent([keys.apiToken(tokenId), ...(cachedKeys ?? [])])
  const token = checkSecret(item, secret)
  const user = cachedKeys ? userItem && parseUser(userItem) : await find(token.organisationId, token.userId)
  if (user === undefined) throw platformError('unauthenticated')
  ownerKeyCache.set(tokenId, ownerKeys(user))
  const isProviderValid = cachedKeys ? isLocal(user) || isEnabledProvider(providerItem) : await isProviderEnabled(user)
  if (!isProviderValid) throw platformError('unauthenticated')
  if (user.suspendedAtMs !== undefined) {
    const message =
      'The identity provider does not confirm the owner of the token. It works again after the owner signs in.'
    throw new PlatformError('unauthenticated', message)
  }
  if (token.expiresAtMs !== undefined && token.expiresAtMs <= now()) {
    throw new PlatformError('token_expired', 'The API token has expired. Create another one.')
  }
  await recordUse(token, user)
  return callerOf(token, user)
}

const ownerKeys = (user: User): readonly keys.Key[] => [
  keys.user(user.organisationId, user.id),
  ...(isLocal(user) ? [] : [keys.identityProvider(user.authProvider)]),
]

function checkSecret(item: Item | undefined, secret: string): ApiTokenRecord {
  if (item === undefined) throw platformError('unauthenticated')
  const record = parseApiToken(item)
  if (!timingSafeEqual(Buffer.from(record.hash), Buffer.from(sha256(secret)))) throw platformError('unauthenticated')
  return record
}

const callerOf = (token: ApiTokenRecord, { id, username, organisationId, roles }: User): Caller => ({
  kind: 'user',
  userId: id,
  username,
  organisationId,
  sessionId: '',
  tokenId: token.id,
  permissions: new Set(permissionsIn(token, permissionsOf(roles))),
})

const hourMs = 3_600_000

/**
 * Records the use once per clock hour, to limit cost. A failure does not reject the request. A token of a user of an
 * identity provider becomes due for the sweep, which confirms the user: the function that handles the request cannot
 * read the provider's secret.
 */
async function recordUse({ id, hash, lastUsedAtMs }: ApiTokenRecord, owner: User): Promise<void> {
  const atMs = now()
  const hourStartMs = atMs - (atMs % hourMs)
  if (lastUsedAtMs === hourStartMs) return
  const dueAttributes = isLocal(owner) ? {} : keys.dueIndexKeys(id, atMs)
  try {
    await tryUpdate(keys.apiToken(id), { set: { lastUsedAtMs: hourStartMs, ...dueAttributes } }, { hash: { is: hash } })
  } catch (error) {
    log('warn', 'Failed to record API token use', { tokenId: id, error: String(error) })
  }
}
