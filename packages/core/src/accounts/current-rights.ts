import { type Permission, permissionsOf } from '@platform/contract/permission'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item } from '../db/table.ts'
import { PlatformError, platformError } from '../error.ts'
import { isOpen, isReadable, parseSession } from './session.ts'
import { verifyAccessToken } from '../signing/access-token.ts'
import { isWithin, now } from '../clock.ts'
import { parseUser, type User, isProviderEnabled } from './user.ts'

/**
 * An access token stays valid for up to 15 minutes after its user, session or a role was removed. Each process
 * therefore uses data of the user and the session that is at most a minute old, and checks both again before each
 * lasting effect: by `reauthorize`, together with the stored response of an `Idempotency-Key`, or in the conditions of
 * the transaction (`outbox/commit.ts`).
 */

export interface CurrentRights {
  user: User
  /** Permissions that both the user's roles and the caller's token include. */
  rights: ReadonlySet<Permission>
}

/**
 * Throws `unauthenticated` if the user, its session or its identity provider is no longer valid, and `forbidden` if the
 * caller lacks one of `permissions` or that of the endpoint. Also reads and returns up to 98 further items.
 */
export async function reauthorize(
  caller: Caller,
  permissions: readonly Permission[],
  itemKeys: readonly keys.Key[] = [],
): Promise<[CurrentRights, ...(Item | undefined)[]]> {
  const [user, session, ...items] = await getConsistent([...callerKeys(caller), ...itemKeys])
  const callerRights = await currentRights(caller, user, session)
  requireCurrentRights(callerRights, permissions)
  if (caller.rights) {
    if (caller.rights.permission !== undefined) requireCurrentRights(callerRights, [caller.rights.permission])
    caller.rights.isConfirmed = true
  }
  return [callerRights, ...items]
}

const callerKeys = ({ organisationId, userId, sessionId }: Caller) => [
  keys.user(organisationId, userId),
  keys.session(sessionId),
]

async function currentRights(
  caller: Caller,
  userItem: Item | undefined,
  sessionItem: Item | undefined,
  isValid = isOpen,
): Promise<CurrentRights> {
  const user = userItem && parseUser(userItem)
  const session = sessionItem && parseSession(sessionItem)
  if (user === undefined) throw platformError('unauthenticated')
  if (caller.tokenId === undefined && (session === undefined || !isValid(session, user)))
    throw platformError('unauthenticated')
  if (!(await isProviderEnabled(user))) throw platformError('unauthenticated')
  const rights = new Set(permissionsOf(user.roles).filter((permission) => caller.permissions.has(permission)))
  return { user, rights }
}

export function requireCurrentRights({ rights }: CurrentRights, permissions: readonly Permission[]): void {
  const missingPermission = permissions.find((permission) => !rights.has(permission))
  if (missingPermission !== undefined) throw platformError('forbidden', { requiredPermission: missingPermission })
}

const maxAgeMs = 60_000

/**
 * Keyed by the caller of one access token, so that a renewed token does not use the permissions of the earlier token.
 */
const recentRights = new WeakMap<Caller, { pending: Promise<CurrentRights>; atMs: number; monotonicMs: number }>()

/**
 * Returns the caller of an access token, with rights that were read at most a minute ago. `permission` is the
 * permission that the endpoint requires.
 */
export async function verifySession(token: string, permission?: Permission): Promise<Caller> {
  const verifiedCaller = await verifyAccessToken(token)
  const { user, rights: permissions } = await rightsWithinMinute(verifiedCaller)
  const caller: Caller = { ...verifiedCaller, username: user.username, permissions }
  const confirm = async (itemKeys: readonly keys.Key[] = []) => {
    const [, ...items] = await reauthorize(caller, [], itemKeys)
    return items
  }
  return Object.assign(caller, { rights: { userVersion: user.version, permission, confirm } })
}

/**
 * Concurrent requests share one read. Two clocks limit the use of a read, because the system clock may be set back and
 * the monotonic clock may stop while the process is frozen.
 */
function rightsWithinMinute(caller: Caller): Promise<CurrentRights> {
  const [recent, monotonicMs] = [recentRights.get(caller), performance.now()]
  if (recent && isWithin(recent.atMs, maxAgeMs) && monotonicMs - recent.monotonicMs < maxAgeMs) return recent.pending
  const pending = readRights(caller)
  recentRights.set(caller, { pending, atMs: now(), monotonicMs })
  pending.catch((error: unknown) => {
    const isFinal = error instanceof PlatformError && error.code === 'unauthenticated'
    if (!isFinal) recentRights.delete(caller)
  })
  return pending
}

async function readRights(caller: Caller): Promise<CurrentRights> {
  const [user, session] = await getConsistent(callerKeys(caller))
  return currentRights(caller, user, session, isReadable)
}
