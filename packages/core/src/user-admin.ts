import { type UserProfile } from '@platform/contract/auth'
import { type UserCreation, type UserUpdate } from '@platform/contract/user'
import { type Caller } from './caller.ts'
import { commit } from './change.ts'
import { renewCredential } from './credential.ts'
import * as keys from './db/keys.ts'
import { orFail, patch, remove as removal, removeAll, type Step, upsert } from './db/table.ts'
import { newId, timeOf } from './id.ts'
import { hashPassword } from './password.ts'
import { announceRecords } from './queue.ts'
import { enterStep, leaveStep, type ListHead, nextTimeMs, takingTurns } from './ranked-list.ts'
import { recordStep } from './record.ts'
import { createSteps, endSessions, type User, usersOf, view } from './user.ts'
import { checkRoles, type Place, placeOf, targetOf } from './user-reach.ts'

/** What an administrator does with the users of an organisation (D15). */

/** Creates a user with a local account. Two calls without collisions, and one password hash. */
export async function create(caller: Caller, request: UserCreation): Promise<UserProfile> {
  let passwordHash: string | undefined
  return takingTurns(async () => {
    const place = await placeOf(caller, request)
    passwordHash ??= await hashPassword(request.password)
    return tryCreate(caller, request, place, passwordHash)
  })
}

async function tryCreate(
  caller: Caller,
  { username, email, roles: asked }: UserCreation,
  { organisationId, isOwn, head }: Place,
  passwordHash: string,
): Promise<UserProfile | undefined> {
  const createdAtMs = nextTimeMs(head)
  const id = newId('user', createdAtMs)
  const roles = [...new Set(asked)]
  const user = { id, organisationId, username, email, roles, authProvider: 'local', createdAtMs }
  const answer = view(user)
  const [userStep, nameStep] = createSteps(user, passwordHash)
  const audit = { action: 'user.create', resource: id, detail: `${username}: ${roles.join(', ')}` }
  const steps = [
    userStep,
    orFail(nameStep, 'username_taken'),
    enterStep(usersOf(organisationId), head, createdAtMs),
    ...countSteps([], roles),
    // The organisation that gets the user and the one that gave it both have it on record.
    ...(isOwn ? [] : [recordStep(caller, { audit })]),
  ]
  const events = [{ name: 'user.created' as const, subject: id, data: { userId: id, username, roles } }]
  const refusal = await commit({ ...caller, organisationId }, { steps, answer, audit, events })
  if (refusal) return undefined
  if (!isOwn) await announceRecords(caller.organisationId)
  return answer
}

/** The step that counts a platform administrator more or less: the last one cannot go. */
function countSteps(before: readonly string[], after: readonly string[]): Step[] {
  const by = Number(after.includes('PlatformAdmin')) - Number(before.includes('PlatformAdmin'))
  if (by === 0) return []
  if (by > 0) return [upsert(keys.administrators(), { add: { count: by } })]
  const isAnotherLeft = { count: { atLeast: 2 } }
  return [orFail(patch(keys.administrators(), { add: { count: by } }, isAnotherLeft), 'last_administrator')]
}

const asRead = ({ version }: User) => ({ version: { is: version } })

/** Changes a user's e-mail, roles or password; a password ends all its sessions. Two calls without collisions. */
export async function update(caller: Caller, userId: string, request: UserUpdate): Promise<UserProfile> {
  let passwordHash: string | undefined
  return takingTurns(async () => {
    const { user, who, place } = await targetOf(caller, userId)
    if (request.roles !== undefined) checkRoles(request.roles, who, place)
    if (request.password !== undefined) passwordHash ??= await hashPassword(request.password)
    return tryUpdate(caller, user, request, passwordHash)
  })
}

async function tryUpdate(
  caller: Caller,
  user: User,
  { email = user.email, roles: asked = [] }: UserUpdate,
  passwordHash: string | undefined,
): Promise<UserProfile | undefined> {
  const { organisationId, id } = user
  const roles = asked.length > 0 ? [...new Set(asked)] : user.roles
  const isReset = passwordHash !== undefined
  const ending = isReset ? endSessions() : {}
  const change = { ...ending, set: { email, roles }, add: { ...ending.add, version: 1 } }
  const detail = [
    `roles ${user.roles.join(', ')} → ${roles.join(', ')}`,
    ...(email === user.email ? [] : [`e-mail ${user.email} → ${email}`]),
    ...(isReset ? ['password reset'] : []),
  ]
  const refusal = await commit(caller, {
    steps: [
      patch(keys.user(organisationId, id), change, asRead(user)),
      ...(isReset ? [orFail(renewCredential(user, passwordHash), 'conflict')] : []),
      ...countSteps(user.roles, roles),
    ],
    audit: { action: 'user.update', resource: id, detail: detail.join('; ') },
  })
  return refusal === undefined ? view({ ...user, email, roles }) : undefined
}

/**
 * Removes a user with its name and its API tokens; its sessions end at their next refresh. Two calls without collisions,
 * and two to clear away what it had set for itself.
 */
export async function remove(caller: Caller, userId: string): Promise<void> {
  await takingTurns(async () => {
    const { user, place } = await targetOf(caller, userId)
    return tryRemove(caller, user, place.head)
  })
  await removeAll(keys.preferences(caller.organisationId, userId))
}

async function tryRemove(caller: Caller, user: User, head: ListHead): Promise<true | undefined> {
  const { organisationId, id, username } = user
  const refusal = await commit(caller, {
    steps: [
      removal(keys.user(organisationId, id), asRead(user)),
      removal(keys.username(username), { userId: { is: id } }),
      leaveStep(usersOf(organisationId), head, timeOf(id)),
      ...[...user.tokenIds].map((tokenId) => removal(keys.apiToken(tokenId))),
      ...countSteps(user.roles, []),
    ],
    audit: { action: 'user.delete', resource: id, detail: username },
    events: [{ name: 'user.deleted', subject: id, data: { userId: id, username } }],
  })
  return refusal === undefined ? true : undefined
}

/** Ends all sessions of a user. Two calls. */
export async function endUserSessions(caller: Caller, userId: string): Promise<void> {
  const { user } = await targetOf(caller, userId)
  await commit(caller, {
    steps: [
      orFail(patch(keys.user(user.organisationId, userId), endSessions()), 'user_not_found'),
      orFail(renewCredential(user), 'conflict'),
    ],
    audit: { action: 'session.revoke_all', resource: userId },
  })
}
