import type { TokenSet } from '@platform/contract/auth'
import { roleNames } from '@platform/contract/permission'
import { email as emailSchema, username as usernameSchema } from '@platform/contract/setup'
import * as z from 'zod'
import { type Origin, system } from '../caller.ts'
import { commit, outboxWrite } from '../outbox/commit.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, orThrow, patch, remove, replace, type WriteItem } from '../db/table.ts'
import { normaliseDn } from './ldap/distinguished-name.ts'
import { PlatformError, platformError } from '../error.ts'
import { newId, sha256 } from '../id.ts'
import { reportFailure } from './provider-failure.ts'
import type { ExternalIdentity, ProviderRecord } from './record.ts'
import { insertWrite, nextSortTimeMs, parseHead, retryOnConflict } from '../db/offset-list.ts'
import type { Effects } from '../outbox/record.ts'
import { quotaOf } from '../accounts/quota.ts'
import { acceptedWrites, type Attempt, countSignIn, createCredential } from '../accounts/credential.ts'
import { rememberDevice } from '../accounts/device.ts'
import { newConfirmation, type ProviderGrant } from '../accounts/provider-check.ts'
import { signingInCaller, open, sessionOpenedEffects, type SignedIn, withDevice } from '../accounts/session.ts'
import { createUserWrites, find, parseUser, type User, userUnchanged, usersOf } from '../accounts/user.ts'

/**
 * Provider and subject alone identify a user. Names and e-mail addresses never match an existing user, because
 * providers may assign them to another person.
 */

export interface UserReference {
  userId: string
  organisationId: string
  /** Set if the groups were incomplete, so that the user kept the current roles. */
  hasKeptRoles?: true | undefined
}

const keptRolesTexts = {
  notice:
    'Your identity provider did not send all of your groups, so your roles were not updated. Contact an administrator if you lack access.',
  auditDetail: 'Roles were not updated, because the list of groups was incomplete',
}

/** `writes` is empty if the user is unchanged and was confirmed recently. */
interface ResolvedUser {
  user: User
  writes: readonly WriteItem[]
  effects?: Effects
}

export const signInExternal = async (
  provider: ProviderRecord,
  identity: ExternalIdentity,
  origin: Origin,
  attempt: Attempt,
): Promise<SignedIn> => {
  await reportMissingGroups(provider, identity, origin)
  return retryOnConflict(async () => {
    const { user, writes, effects } = await resolveUser(provider, identity)
    const session = open(user, origin, user.epoch)
    const hasKeptRoles = identity.missingGroups !== undefined
    const tokens = { ...(await session.tokens()), ...(hasKeptRoles && { notice: keptRolesTexts.notice }) }
    const { audit, events } = openedEffects(user, session.id, hasKeptRoles)
    const device = attempt.device && rememberDevice(attempt.device.known, [user.id, attempt.subject])
    const auditWrite =
      effects?.audit && outboxWrite(system(user.organisationId, origin.address), { audit: effects.audit })
    const failure = await commit(signingInCaller(user, origin), {
      writes: [
        ...writes,
        ...(auditWrite ? [auditWrite] : []),
        ...session.writes,
        ...acceptedWrites(attempt),
        ...(device?.writes ?? []),
      ],
      audit,
      // Two records could be projected in any order; a single one keeps the order of the events.
      events: [...(effects?.events ?? []), ...events],
    })
    return failure === undefined ? withDevice(tokens, device) : undefined
  })
}

export const resolveExternalUser = async (
  provider: ProviderRecord,
  identity: ExternalIdentity,
  origin: Origin,
): Promise<UserReference> => {
  await reportMissingGroups(provider, identity, origin)
  return retryOnConflict(async () => {
    const { user, writes, effects } = await resolveUser(provider, identity)
    const { id: userId, organisationId } = user
    const reference = {
      userId,
      organisationId,
      ...(identity.missingGroups !== undefined && { hasKeptRoles: true as const }),
    }
    if (writes.length === 0) return reference
    const failure = await commit(system(organisationId, origin.address), { writes, ...effects })
    return failure === undefined ? reference : undefined
  })
}

async function reportMissingGroups(
  provider: ProviderRecord,
  { missingGroups, username }: ExternalIdentity,
  origin: Origin,
): Promise<void> {
  if (missingGroups === undefined) return
  const reason = `${missingGroups} User: ${username.slice(0, 64)}.`
  await reportFailure(provider, 'groups_incomplete', reason, origin)
}

function openedEffects(user: User, sessionId: string, hasKeptRoles: boolean) {
  const { audit, events } = sessionOpenedEffects(user, sessionId)
  return { audit: hasKeptRoles ? { ...audit, detail: keptRolesTexts.auditDetail } : audit, events }
}

/** `consumeWrites` use up the proof of sign-in. Throws `sign_in_code_invalid` if the user was removed or suspended. */
export async function openExternalSession(
  { userId, organisationId, hasKeptRoles }: UserReference,
  origin: Origin,
  consumeWrites: readonly WriteItem[],
  grant?: ProviderGrant,
): Promise<TokenSet> {
  const user = await find(organisationId, userId)
  if (user === undefined || user.suspendedAtMs !== undefined) throw platformError('sign_in_code_invalid')
  await countSignIn(user.username)
  const session = open(user, origin, user.epoch, grant)
  const tokens = await session.tokens()
  await commit(signingInCaller(user, origin), {
    writes: [...consumeWrites, ...session.writes.map((step) => orThrow(step, 'conflict'))],
    ...openedEffects(user, session.id, hasKeptRoles === true),
  })
  return hasKeptRoles ? { ...tokens, notice: keptRolesTexts.notice } : tokens
}

const Link = z.object({ userId: z.string() })

async function resolveUser(provider: ProviderRecord, identity: ExternalIdentity): Promise<ResolvedUser> {
  const { organisationId } = provider
  const names = candidateNames(provider, identity)
  const linkKey = keys.externalIdentity(provider.id, sha256(identity.subject))
  const itemKeys = [linkKey, usersOf(organisationId).head, keys.organisation(organisationId)]
  const [item, head, organisation, ...usernameItems] = await getConsistent([...itemKeys, ...names.map(keys.username)])
  const link = item && Link.parse(item)
  const existingUser = link && (await find(organisationId, link.userId))
  const isFree = (index: number) => usernameItems[index] === undefined
  if (existingUser) return updateUser(existingUser, provider, identity, isFree(0) ? names[0] : undefined)
  // Without the groups, the roles of the new user are unknown.
  if (identity.missingGroups !== undefined) throw platformError('groups_incomplete')
  const username = names.find((_, index) => isFree(index))
  if (username === undefined) throw platformError('username_taken')
  // The message does not reveal the number of users to a stranger.
  if (parseHead(head).total >= quotaOf(organisation, 'users'))
    throw new PlatformError('limit_reached', 'The organisation cannot have more users. Ask its administrator.')
  return createUser(provider, identity, { username, head, linkKey, removedUserId: link?.userId })
}

interface NewUser {
  username: string
  head: Item | undefined
  linkKey: keys.Key
  /** Set if the identity link still refers to a removed user. */
  removedUserId: string | undefined
}

function createUser(
  provider: ProviderRecord,
  identity: ExternalIdentity,
  { username, head: headItem, linkKey, removedUserId }: NewUser,
): ResolvedUser {
  const { organisationId, id: authProvider } = provider
  const list = usersOf(organisationId)
  const head = parseHead(headItem)
  const createdAtMs = nextSortTimeMs(head)
  const id = newId('user', createdAtMs)
  const attributes = attributesOf(provider, identity)
  const subjectHash = sha256(identity.subject)
  // The subject is needed to find the directory entry again.
  const subject = provider.type === 'LDAP' && { subject: identity.subject }
  const record = { id, organisationId, username, ...attributes, authProvider, subjectHash, ...subject, createdAtMs }
  const isLinkUnchanged =
    removedUserId === undefined ? { pk: { absent: true } as const } : { userId: { is: removedUserId } }
  return {
    user: parseUser(record),
    writes: [
      replace(linkKey, { userId: id, organisationId }, isLinkUnchanged),
      ...createUserWrites(record),
      insertWrite(list, head, createdAtMs),
    ],
    effects: {
      audit: {
        action: 'user.create',
        resource: id,
        detail: `${username}: ${attributes.roles.join(', ')}; by ${authProvider}`,
      },
      events: [{ name: 'user.created', subject: id, data: { userId: id, username, roles: attributes.roles } }],
    },
  }
}

const attributesOf = (provider: ProviderRecord, identity: ExternalIdentity) => ({
  displayName: displayNameOf(identity),
  email: emailOf(identity),
  roles: rolesOf(provider, identity),
})

/** `freeName` is the first candidate, if no user has it. */
function updateUser(
  user: User,
  provider: ProviderRecord,
  identity: ExternalIdentity,
  freeName: string | undefined,
): ResolvedUser {
  const username = newUsername(user, identity, freeName)
  const attributes = {
    username,
    ...attributesOf(provider, identity),
    ...(identity.missingGroups !== undefined && { roles: user.roles }),
  }
  const { displayName, email, roles } = attributes
  const changes = [
    ['name', user.username, username],
    ['display name', user.displayName, displayName],
    ['e-mail', user.email, email],
    ['roles', user.roles.join(', '), roles.join(', ')],
  ].flatMap(([field, before, after]) => (before === after ? [] : [`${field} ${before} → ${after}`]))
  const isSuspended = user.suspendedAtMs !== undefined
  if (isSuspended) changes.push('API tokens work again')
  const confirmation = newConfirmation(user)
  const key = keys.user(user.organisationId, user.id)
  if (changes.length === 0) return { user, writes: confirmation ? [patch(key, { set: confirmation })] : [] }
  const set = { ...attributes, ...confirmation }
  const change = { set, add: { version: 1 }, remove: isSuspended ? ['suspendedAtMs'] : [] }
  return {
    user: { ...user, ...attributes, suspendedAtMs: undefined },
    writes: [
      patch(key, change, userUnchanged(user)),
      ...(isSameName(username, user.username) ? [] : renameWrites(user, username)),
    ],
    effects: {
      audit: { action: 'user.update', resource: user.id, detail: [...changes, `by ${provider.id}`].join('; ') },
    },
  }
}

const isSameName = (one: string, other: string): boolean => keys.foldUsername(one) === keys.foldUsername(other)

/** Returns the provider's name for the user, or the current name if the provider's name is invalid or taken. */
function newUsername({ username }: User, identity: ExternalIdentity, freeName: string | undefined): string {
  const name = usernameSchema.safeParse(identity.username).data
  return name !== undefined && (name === freeName || isSameName(name, username)) ? name : username
}

const renameWrites = (user: User, username: string): WriteItem[] => [
  createCredential({ ...user, username }, undefined, user.epoch),
  remove(keys.username(user.username), { userId: { is: user.id } }),
]

/** Returns all roles that the groups map to, in the order of the role list, or the default role if there are none. */
function rolesOf({ type, roleMappings, defaultRole }: ProviderRecord, { groups }: ExternalIdentity): string[] {
  const normalise = (group: string) => (type === 'LDAP' ? normaliseDn(group) : group)
  const memberships = new Set(groups.map(normalise))
  const mappedRoles = new Set(
    roleMappings.filter(({ group }) => memberships.has(normalise(group))).map(({ role }) => role),
  )
  return mappedRoles.size === 0 ? [defaultRole] : roleNames.filter((role) => mappedRoles.has(role))
}

const emailOf = ({ email }: ExternalIdentity): string => emailSchema.safeParse(email).data ?? ''

/** Returns at most 100 characters, without control characters and those that reorder the surrounding text. */
const displayNameOf = ({ displayName = '' }: ExternalIdentity): string =>
  displayName
    .slice(0, 500)
    .normalize('NFC')
    .replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')
    .trim()
    .slice(0, 100)
    .replace(/\p{Cs}$/u, '')

/** Returns the provider's name if it is usable, then two names with a hash of provider and subject. */
function candidateNames({ id }: ProviderRecord, { username, subject }: ExternalIdentity): string[] {
  const hash = sha256(JSON.stringify([id, subject]))
  const plainName = usernameSchema.safeParse(username)
  const stem = username
    .slice(0, 200)
    .normalize('NFKC')
    .replace(/[^\p{L}\p{M}\p{N}._@+-]+/gu, '-')
    .replace(/^[^\p{L}\p{N}]+/u, '')
  const prefix = stem.slice(0, 40).replace(/\p{Cs}$/u, '') || 'user'
  const suffixedNames = [8, 20].map((length) => `${prefix}-${hash.slice(0, length)}`)
  const isUsable = plainName.success && !suffixedNames.some((name) => isSameName(name, plainName.data))
  return [...(isUsable ? [plainName.data] : []), ...suffixedNames]
}
