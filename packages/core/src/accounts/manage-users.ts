import type { UserProfile } from '@platform/contract/auth'
import type { UserCreation, UserUpdate } from '@platform/contract/user'
import type { Caller } from '../caller.ts'
import { commit, outboxWrite } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import { renewCredential } from './credential.ts'
import type { Change } from '../db/expression.ts'
import * as keys from '../db/keys.ts'
import { create as creation, orThrow, patch, remove as removal, type WriteItem, upsert } from '../db/table.ts'
import { PlatformError, platformError, validationFailedError } from '../error.ts'
import { newId, timeMsOf } from '../id.ts'
import { hashPassword } from './password.ts'
import { checkNewPassword } from './password-rules.ts'
import { enqueueProjections } from '../aws/queues.ts'
import { insertWrite, removeWrite, nextSortTimeMs, retryOnConflict } from '../db/offset-list.ts'
import { createUserWrites, endSessions, isLocal, type User, userUnchanged, usersOf, view } from './user.ts'
import { checkGrantable, type TargetOrganisation, targetOrganisationFor, findManageableUser } from './delegation.ts'

export async function create(caller: Caller, request: UserCreation): Promise<UserProfile> {
  let passwordHash: string | undefined
  return retryOnConflict(async () => {
    const target = await targetOrganisationFor(caller, request)
    const { username, password } = request
    await checkNewPassword({ field: 'password', password, username, platformName: target.platformName })
    passwordHash ??= await hashPassword(password, caller.organisationId)
    return tryCreate(caller, request, target, passwordHash)
  })
}

async function tryCreate(
  caller: Caller,
  { username, email, roles: requestedRoles }: UserCreation,
  { organisationId, isOwn, isPlatform, head }: TargetOrganisation,
  passwordHash: string,
): Promise<UserProfile | undefined> {
  const createdAtMs = nextSortTimeMs(head)
  const id = newId('user', createdAtMs)
  const roles = [...new Set(requestedRoles)]
  const user = { id, organisationId, username, email, roles, authProvider: 'local', createdAtMs }
  const response = view(user)
  const [userWrite, credentialWrite] = createUserWrites(user, passwordHash)
  const isRecovery = !isOwn && head.total > 0
  const action = isRecovery ? 'organisation.recover' : 'user.create'
  const audit = { action, resource: id, detail: `${username}: ${roles.join(', ')}` }
  const writes = [
    userWrite,
    orThrow(credentialWrite, 'username_taken'),
    insertWrite(usersOf(organisationId), head, createdAtMs),
    ...(isOwn ? administratorCountWrites(user, isPlatform, [], roles) : [firstAdministratorWrite(organisationId)]),
    ...(isOwn ? [] : [outboxWrite(caller, { audit })]),
  ]
  const recoveredEvent = {
    name: 'organisation.recovered' as const,
    subject: organisationId,
    data: { userId: id, username },
  }
  const createdEvent = { name: 'user.created' as const, subject: id, data: { userId: id, username, roles } }
  const events = isRecovery ? [createdEvent, recoveredEvent] : [createdEvent]
  const failure = await commit({ ...caller, organisationId }, { writes, response, audit, events })
  if (failure) return undefined
  if (!isOwn) await enqueueProjections(caller.organisationId)
  return response
}

/**
 * Returns the write that updates the number of local administrators, if it changes. The write prevents the removal of
 * the last one. Users of identity providers do not count, because a provider may be disabled or removed.
 */
function administratorCountWrites(
  user: Pick<User, 'authProvider' | 'organisationId'>,
  isPlatform: boolean,
  before: readonly string[],
  after: readonly string[],
): WriteItem[] {
  if (!isLocal(user)) return []
  const role = isPlatform ? 'PlatformAdmin' : 'OrgAdmin'
  const delta = Number(after.includes(role)) - Number(before.includes(role))
  if (delta === 0) return []
  const key = keys.administrators(user.organisationId)
  if (delta > 0) return [upsert(key, { add: { count: delta } })]
  return [orThrow(patch(key, { add: { count: delta } }, { count: { atLeast: 2 } }), 'last_administrator')]
}

/** Platform administrators can create users in another organisation only while it has no local administrator. */
const firstAdministratorWrite = (organisationId: string): WriteItem => {
  const noAdministrators = { count: { absentOrAtMost: 0 } }
  return orThrow(
    upsert(keys.administrators(organisationId), { add: { count: 1 } }, noAdministrators),
    'organisation_has_users',
  )
}

export async function update(caller: Caller, userId: string, request: UserUpdate): Promise<UserProfile> {
  if (request.password !== undefined) checkPasswordReset(caller, userId)
  let passwordHash: string | undefined
  return retryOnConflict(async () => {
    const { user, callerRights, target } = await findManageableUser(caller, userId)
    if (!isLocal(user)) throw platformError('account_not_local')
    if (request.roles !== undefined) checkGrantable(request.roles, callerRights, target)
    const { password } = request
    if (password !== undefined) {
      await checkNewPassword({
        field: 'password',
        password,
        username: user.username,
        platformName: target.platformName,
      })
      passwordHash ??= await hashPassword(password, caller.organisationId)
    }
    return tryUpdate(caller, user, request, { passwordHash, isPlatform: target.isPlatform })
  })
}

/** Prevents account takeover with a stolen session or API token. */
function checkPasswordReset({ userId: callerId, tokenId }: Caller, userId: string): void {
  if (tokenId !== undefined)
    throw new PlatformError('forbidden', 'An API token cannot set passwords. Sign in to do so.')
  if (userId !== callerId) return
  const message = 'must be the password of another user; change your own at PUT /api/v1/users/me/password'
  throw validationFailedError([{ in: 'body', path: '/password', code: 'own_password', message }])
}

async function tryUpdate(
  caller: Caller,
  user: User,
  { email = user.email, roles: requestedRoles = [] }: UserUpdate,
  { passwordHash, isPlatform }: { passwordHash: string | undefined; isPlatform: boolean },
): Promise<UserProfile | undefined> {
  const { organisationId, id } = user
  const roles = requestedRoles.length > 0 ? [...new Set(requestedRoles)] : user.roles
  const isReset = passwordHash !== undefined
  const sessionChange: Change = isReset ? endSessions() : { add: { version: 1 } }
  const change = {
    ...sessionChange,
    set: { email, roles },
    remove: [...(sessionChange.remove ?? []), ...(isReset ? ['tokenIds'] : [])],
  }
  const detail = [
    `roles ${user.roles.join(', ')} → ${roles.join(', ')}`,
    ...(email === user.email ? [] : [`e-mail ${user.email} → ${email}`]),
    ...(isReset ? ['password reset'] : []),
  ]
  const failure = await commit(caller, {
    writes: [
      patch(keys.user(organisationId, id), change, userUnchanged(user)),
      ...(isReset ? [orThrow(renewCredential(user, passwordHash), 'conflict'), ...tokenRemovals(user)] : []),
      ...administratorCountWrites(user, isPlatform, user.roles, roles),
    ],
    audit: { action: 'user.update', resource: id, detail: detail.join('; ') },
  })
  return failure === undefined ? view({ ...user, email, roles }) : undefined
}

export const tokenRemovals = ({ tokenIds }: User): WriteItem[] =>
  [...tokenIds].map((tokenId) => removal(keys.apiToken(tokenId)))

const linkRemovals = ({ id, authProvider, subjectHash }: User): WriteItem[] =>
  subjectHash === undefined ? [] : [removal(keys.externalIdentity(authProvider, subjectHash), { userId: { is: id } })]

/**
 * Also removes the identity link, so that a later sign-in with that identity creates a new user. The user's access
 * tokens can read for at most another minute. The sweep deletes the preferences.
 */
export async function remove(caller: Caller, userId: string): Promise<void> {
  await retryOnConflict(async () => {
    const { user, target } = await findManageableUser(caller, userId)
    return tryRemove(caller, user, target)
  })
}

/** Longer than the 15 minutes for which access tokens are valid, so that no later request saves preferences. */
const purgeDelayMs = 16 * 60_000

async function tryRemove(
  caller: Caller,
  user: User,
  { head, isPlatform }: TargetOrganisation,
): Promise<true | undefined> {
  const { organisationId, id, username } = user
  const failure = await commit(caller, {
    writes: [
      removal(keys.user(organisationId, id), userUnchanged(user)),
      removal(keys.username(username), { userId: { is: id } }),
      ...linkRemovals(user),
      removeWrite(usersOf(organisationId), head, timeMsOf(id)),
      ...tokenRemovals(user),
      ...administratorCountWrites(user, isPlatform, user.roles, []),
      creation(keys.userPurge(id), { organisationId, userId: id, ...keys.dueIndexKeys(id, now() + purgeDelayMs) }),
    ],
    audit: { action: 'user.delete', resource: id, detail: username },
    events: [{ name: 'user.deleted', subject: id, data: { userId: id, username } }],
  })
  return failure === undefined ? true : undefined
}

export async function endUserSessions(caller: Caller, userId: string): Promise<void> {
  if (caller.tokenId !== undefined && userId === caller.userId)
    throw new PlatformError('forbidden', 'An API token cannot end the sessions of its owner. Sign in to do so.')
  const { user } = await findManageableUser(caller, userId)
  await commit(caller, {
    writes: [
      orThrow(patch(keys.user(user.organisationId, userId), endSessions()), 'user_not_found'),
      orThrow(renewCredential(user), 'conflict'),
    ],
    audit: { action: 'session.revoke_all', resource: userId },
  })
}

export async function revokeTokens(caller: Caller, userId: string): Promise<void> {
  await retryOnConflict(async () => {
    const { user } = await findManageableUser(caller, userId)
    const change = { remove: ['tokenIds'], add: { version: 1 } }
    const failure = await commit(caller, {
      writes: [patch(keys.user(user.organisationId, userId), change, userUnchanged(user)), ...tokenRemovals(user)],
      audit: { action: 'token.delete_all', resource: userId },
    })
    return failure === undefined ? true : undefined
  })
}
