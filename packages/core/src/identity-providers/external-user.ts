import { type TokenSet } from '@platform/contract/auth'
import { roleNames } from '@platform/contract/permission'
import { username as usernameForm } from '@platform/contract/setup'
import * as z from 'zod'
import { type Origin, system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import * as keys from '../db/keys.ts'
import { getConsistent, type Item, orThrow, patch, replace, type WriteItem } from '../db/table.ts'
import { normalDn } from './ldap/distinguished-name.ts'
import { platformError } from '../error.ts'
import { newId, sha256 } from '../id.ts'
import { type ExternalIdentity, type ProviderRecord } from './record.ts'
import { insertWrite, nextSortTimeMs, parseHead, retryOnConflict } from '../db/offset-list.ts'
import { outboxWrite, type Effects } from '../outbox/record.ts'
import { signingInCaller, open, sessionOpenedEffects } from '../accounts/session.ts'
import { createUserWrites, find, parseUser, type User, userUnchanged, usersOf } from '../accounts/user.ts'

/**
 * Users whom an identity provider vouches for (D41). Provider and subject say who somebody is here, and nothing else
 * does: neither a name nor an e-mail address ever leads to a user that is there already.
 */

/** Where a user stands. */
export interface UserReference {
  userId: string
  organisationId: string
}

/** Somebody who arrives: the user, and what makes or changes it; no steps where the row says all of it. */
interface Arrival {
  user: User
  steps: readonly WriteItem[]
  told?: Effects
}

/**
 * Signs in somebody whom a provider vouches for; makes the user where there is none, and takes over what the provider
 * says of it. Two calls the first time, then three; without collisions.
 */
export const signInExternal = (
  provider: ProviderRecord,
  identity: ExternalIdentity,
  origin: Origin,
): Promise<TokenSet> =>
  retryOnConflict(async () => {
    const { user, steps, told } = await arrivalOf(provider, identity)
    const session = open(user, origin, user.epoch)
    const tokens = await session.tokens()
    const { audit, events } = sessionOpenedEffects(user, session.id)
    const before = told?.audit && outboxWrite(system(user.organisationId, origin.address), { audit: told.audit })
    const refusal = await commit(signingInCaller(user, origin), {
      steps: [...steps, ...(before ? [before] : []), ...session.steps],
      audit,
      // In one record: their order is theirs.
      events: [...(told?.events ?? []), ...events],
    })
    return refusal === undefined ? tokens : undefined
  })

/**
 * The user of an identity, as `signInExternal` makes or changes it, without a session. Two calls, the second a write or a
 * read; three where something has changed.
 */
export const resolveExternalUser = (
  provider: ProviderRecord,
  identity: ExternalIdentity,
  origin: Origin,
): Promise<UserReference> =>
  retryOnConflict(async () => {
    const { user, steps, told } = await arrivalOf(provider, identity)
    const { id: userId, organisationId } = user
    if (steps.length === 0) return { userId, organisationId }
    const refusal = await commit(system(organisationId, origin.address), { steps, ...told })
    return refusal === undefined ? { userId, organisationId } : undefined
  })

/**
 * Opens a session of a user that `externalSession` has answered, in one transaction with the steps that use up what proves
 * the sign-in. Throws `sign_in_code_invalid` where the user is no more. Two calls.
 */
export async function openExternalSession(
  { userId, organisationId }: UserReference,
  origin: Origin,
  proof: readonly WriteItem[],
): Promise<TokenSet> {
  const user = await find(organisationId, userId)
  if (user === undefined) throw platformError('sign_in_code_invalid')
  const session = open(user, origin, user.epoch)
  const tokens = await session.tokens()
  await commit(signingInCaller(user, origin), {
    steps: [...proof, ...session.steps.map((step) => orThrow(step, 'conflict'))],
    ...sessionOpenedEffects(user, session.id),
  })
  return tokens
}

const Link = z.object({ userId: z.string() })

/** One call for somebody new, else two. */
async function arrivalOf(provider: ProviderRecord, identity: ExternalIdentity): Promise<Arrival> {
  const { organisationId } = provider
  const names = namesOf(provider, identity)
  const linkKey = keys.externalIdentity(provider.id, sha256(identity.subject))
  const wanted = [linkKey, usersOf(organisationId).head, ...names.map(keys.username)]
  const [item, head, ...namesakes] = await getConsistent(wanted)
  const link = item && Link.parse(item)
  const known = link && (await find(organisationId, link.userId))
  if (known) return returning(known, provider, identity)
  const username = names.find((_name, index) => namesakes[index] === undefined)
  if (username === undefined) throw platformError('username_taken')
  return joining(provider, identity, { username, head, linkKey, userIdBefore: link?.userId })
}

/** What somebody new enters with. */
interface Entry {
  username: string
  head: Item | undefined
  linkKey: keys.Key
  /** Of a user that is no more, where its link is still there. */
  userIdBefore: string | undefined
}

function joining(
  provider: ProviderRecord,
  identity: ExternalIdentity,
  { username, head: headItem, linkKey, userIdBefore }: Entry,
): Arrival {
  const { organisationId, id: authProvider } = provider
  const list = usersOf(organisationId)
  const head = parseHead(headItem)
  const createdAtMs = nextSortTimeMs(head)
  const id = newId('user', createdAtMs)
  const facts = { email: emailOf(identity), roles: rolesOf(provider, identity) }
  const subjectHash = sha256(identity.subject)
  const row = { id, organisationId, username, ...facts, authProvider, subjectHash, createdAtMs }
  const isAsFound = userIdBefore === undefined ? { pk: { absent: true } as const } : { userId: { is: userIdBefore } }
  return {
    user: parseUser(row),
    steps: [
      replace(linkKey, { userId: id, organisationId }, isAsFound),
      ...createUserWrites(row),
      insertWrite(list, head, createdAtMs),
    ],
    told: {
      audit: {
        action: 'user.create',
        resource: id,
        detail: `${username}: ${facts.roles.join(', ')}; by ${authProvider}`,
      },
      events: [{ name: 'user.created', subject: id, data: { userId: id, username, roles: facts.roles } }],
    },
  }
}

/** The row changes where the provider says something else than before, and only then. */
function returning(user: User, provider: ProviderRecord, identity: ExternalIdentity): Arrival {
  const [email, roles] = [emailOf(identity), rolesOf(provider, identity)]
  const isSame = email === user.email && roles.join() === user.roles.join()
  if (isSame) return { user, steps: [] }
  const detail = [
    `roles ${user.roles.join(', ')} → ${roles.join(', ')}`,
    ...(email === user.email ? [] : [`e-mail ${user.email} → ${email}`]),
    `by ${provider.id}`,
  ]
  const change = { set: { email, roles }, add: { version: 1 } }
  return {
    user: { ...user, email, roles },
    steps: [patch(keys.user(user.organisationId, user.id), change, userUnchanged(user))],
    told: { audit: { action: 'user.update', resource: user.id, detail: detail.join('; ') } },
  }
}

/** All roles that the groups map to, in the order of the role list; the default role where there is none. */
function rolesOf({ type, roleMappings, defaultRole }: ProviderRecord, { groups }: ExternalIdentity): string[] {
  const spelled = (group: string) => (type === 'LDAP' ? normalDn(group) : group)
  const held = new Set(groups.map(spelled))
  const mapped = new Set(roleMappings.filter(({ group }) => held.has(spelled(group))).map(({ role }) => role))
  return mapped.size === 0 ? [defaultRole] : roleNames.filter((role) => mapped.has(role))
}

const Email = z.email().max(254)

/** None where the provider tells nothing that is one. */
const emailOf = ({ email }: ExternalIdentity): string => (Email.safeParse(email).success ? email : '')

/**
 * The names that somebody may get, the first free one of them: as the provider says, where that has the form of a name,
 * else marked with what nobody else's provider and subject make.
 */
function namesOf({ id }: ProviderRecord, { username, subject }: ExternalIdentity): string[] {
  const mark = sha256(JSON.stringify([id, subject]))
  const plain = usernameForm.safeParse(username)
  const stem = username
    .slice(0, 200)
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^A-Za-z0-9._@+-]+/g, '-')
  const short = stem.replace(/^[^A-Za-z0-9]+/, '').slice(0, 40) || 'user'
  const marked = [8, 20].map((length) => `${short}-${mark.slice(0, length)}`)
  const isOwn = plain.success && !marked.includes(plain.data.toLowerCase())
  return [...(isOwn ? [plain.data] : []), ...marked]
}
