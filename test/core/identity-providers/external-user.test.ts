import { randomUUID } from 'node:crypto'
import { type Caller } from '@platform/core/caller'
import * as keys from '@platform/core/db/keys'
import { get, remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { signInExternal } from '@platform/core/identity-providers/external-user'
import { sha256 } from '@platform/core/id'
import { type ExternalIdentity, type ProviderRecord } from '@platform/core/identity-providers/record'
import { refresh, signIn } from '@platform/core/accounts/session'
import { find, list, usersOf } from '@platform/core/accounts/user'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { readHead } from '@platform/core/db/offset-list'
import { beforeAll, expect, test } from 'vitest'
import {
  userRequest,
  password,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  newOrigin,
  expectError,
} from '../../support/fixtures.ts'
import { onStoreCall, countStoreCalls, beforeCommand } from '../../support/store-calls.ts'
import { pendingRecords } from '../support/outbox.ts'
import { callerOfTokens, storeProvider, externalIdentity } from '../support/providers.ts'

let platform: SignedInUser
let caller: Caller
let idp: ProviderRecord
beforeAll(async () => {
  platform = await setUpPlatform()
  caller = platform.caller
  idp = await storeProvider(caller.organisationId, {
    roleMappings: [
      { group: 'ops', role: 'Operator' },
      { group: 'security', role: 'Auditor' },
      { group: 'root', role: 'PlatformAdmin' },
    ],
  })
})

/** Signs in and answers the user's row. */
async function arrive(identity: ExternalIdentity, by = idp) {
  const { userId, organisationId } = await callerOfTokens(await signInExternal(by, identity, newOrigin()))
  const user = await find(organisationId, userId)
  if (user === undefined) throw new Error('There is no user.')
  return user
}
const recordsOf = async (userId: string) =>
  (await pendingRecords(caller.organisationId)).filter(
    ({ audit, events }) => audit?.resource === userId || events.some(({ subject }) => subject === userId),
  )
/** What was done to the user itself, in an order that does not matter. */
const actionsOf = async (userId: string) =>
  (await recordsOf(userId)).flatMap(({ audit }) => (audit?.resource === userId ? audit.action : [])).toSorted()
const total = async (): Promise<number> => (await readHead(usersOf(caller.organisationId))).total

test('the first sign-in makes a user without a password, with what the provider says; later ones find it', async () => {
  const identity = externalIdentity({ groups: ['security', 'elsewhere', 'ops'] })
  const before = await total()
  expect(await countStoreCalls(async () => void (await signInExternal(idp, identity, newOrigin())))).toBe(2)
  expect(await countStoreCalls(async () => void (await signInExternal(idp, identity, newOrigin())))).toBe(3)
  const user = await arrive(identity)
  expect(user).toMatchObject({
    username: identity.username,
    email: identity.email,
    roles: ['Operator', 'Auditor'],
    authProvider: idp.id,
    organisationId: idp.organisationId,
    version: 1,
  })
  expect(await total()).toBe(before + 1)
  const { items } = await list(caller, { page: 1, pageSize: 1 })
  expect(items.map(({ id, authProvider }) => [id, authProvider])).toEqual([[user.id, idp.id]])
  expect(await get(keys.username(identity.username))).not.toHaveProperty('passwordHash')

  const told = (await recordsOf(user.id)).flatMap(({ events }) => events.map(({ name }) => name))
  expect(told.toSorted()).toEqual(['user.created', ...Array<string>(3).fill('user.signed_in')])
  const first = (await recordsOf(user.id)).find(({ events }) => events.length > 1)
  expect(first?.events.map(({ name }) => name)).toEqual(['user.created', 'user.signed_in'])
  expect(await actionsOf(user.id)).toEqual(['user.create'])
})

test('roles and e-mail are what the provider says at each sign-in; a row that says the same is not written', async () => {
  const identity = externalIdentity({ groups: ['ops'] })
  const { id } = await arrive(identity)
  const changed = { ...identity, email: 'other@example.com', groups: [] }
  expect(await arrive(changed)).toMatchObject({ id, roles: ['Viewer'], email: 'other@example.com', version: 2 })
  expect(await arrive(changed)).toMatchObject({ id, version: 2 })
  expect(await arrive(identity)).toMatchObject({ id, roles: ['Operator'], email: identity.email, version: 3 })
  expect(await arrive({ ...identity, email: 'no address' })).toMatchObject({ id, email: '', version: 4 })
  const details = (await recordsOf(id)).flatMap(({ audit }) => (audit?.action === 'user.update' ? audit.detail : []))
  expect(details).toHaveLength(3)
  expect(details.join('\n')).toContain(`roles Operator → Viewer; e-mail ${identity.email} → other@example.com`)
})

test('new roles stand in the tokens of the sign-in that brought them', async () => {
  const identity = externalIdentity()
  const before = await callerOfTokens(await signInExternal(idp, identity, newOrigin()))
  const after = await callerOfTokens(await signInExternal(idp, { ...identity, groups: ['ops'] }, newOrigin()))
  expect([before.permissions.has('jobs:write'), after.permissions.has('jobs:write')]).toEqual([false, true])
})

test('a name or an e-mail that somebody has leads to nobody: the newcomer gets another name, and keeps it', async () => {
  const local = await UserAdmin.create(caller, userRequest())
  const [one, two] = [await storeProvider(caller.organisationId), await storeProvider(caller.organisationId)]
  const identity = externalIdentity({ subject: 'same', username: local.username.toUpperCase(), email: local.email })
  const [first, second] = [await arrive(identity, one), await arrive(identity, two)]
  expect(new Set([local.id, first.id, second.id]).size).toBe(3)
  expect(first.username).toMatch(new RegExp(`^${local.username.slice(0, 40)}-[0-9a-f]{8}$`, 'i'))
  expect(first.username).not.toBe(second.username)

  await UserAdmin.remove(caller, local.id)
  expect(await arrive(identity, one)).toMatchObject({ id: first.id, username: first.username })
  expect(await arrive({ ...identity, username: 'married' }, one)).toMatchObject({ username: first.username })
})

test('a subject is one of its provider: another spelling is somebody else', async () => {
  const identity = externalIdentity({ subject: 'Ada' })
  const ids = new Set([
    (await arrive(identity)).id,
    (await arrive({ ...identity, subject: 'ada' })).id,
    (await arrive({ ...identity, subject: 'Ada ' })).id,
    (await arrive({ ...identity, subject: 'x'.repeat(5000) })).id,
  ])
  expect(ids.size).toBe(4)
})

test.each([
  ['müller', /^muller-[0-9a-f]{8}$/],
  ['Łukasz Öz', /^ukasz-Oz-[0-9a-f]{8}$/],
  ['山田', /^user-[0-9a-f]{8}$/],
  ['', /^user-[0-9a-f]{8}$/],
  ['a\0b\r\nc', /^a-b-c-[0-9a-f]{8}$/],
  ['../../etc', /^etc-[0-9a-f]{8}$/],
  ['<script>', /^script--[0-9a-f]{8}$/],
  ['x'.repeat(100_000), /^x{40}-[0-9a-f]{8}$/],
  ['\ud800', /^user-[0-9a-f]{8}$/],
  [' spaced ', /^spaced$/],
])('who is called %j there gets a name that fits here', async (username, form) => {
  const identity = externalIdentity({ username })
  const user = await arrive(identity)
  expect(user.username).toMatch(form)
  expect(await arrive(identity)).toMatchObject({ id: user.id, username: user.username })
})

test('whoever takes all names that somebody could get keeps that one out, and harms nobody else', async () => {
  const identity = externalIdentity({ username: 'crowded' })
  const mark = sha256(JSON.stringify([idp.id, identity.subject]))
  for (const username of ['crowded', `crowded-${mark.slice(0, 8)}`, `crowded-${mark.slice(0, 20)}`]) {
    await UserAdmin.create(caller, userRequest(['Viewer'], username))
  }
  await expectError(signInExternal(idp, identity, newOrigin()), 'username_taken')
  expect((await arrive(externalIdentity({ username: 'crowded' }))).username).toMatch(/^crowded-/)
})

test('ten first sign-ins of one person at the same moment make one user, and each gets a session', async () => {
  const identity = externalIdentity()
  const before = await total()
  const callers = await Promise.all(
    Array.from({ length: 10 }, async () => callerOfTokens(await signInExternal(idp, identity, newOrigin()))),
  )
  expect(new Set(callers.map(({ userId }) => userId)).size).toBe(1)
  expect(new Set(callers.map(({ sessionId }) => sessionId)).size).toBe(10)
  expect(await total()).toBe(before + 1)
})

test('ten people whom the provider calls the same, at the same moment, are ten users', async () => {
  const username = `twin-${randomUUID().slice(0, 8)}`
  const users = await Promise.all(Array.from({ length: 10 }, async () => arrive(externalIdentity({ username }))))
  expect(new Set(users.map(({ id }) => id)).size).toBe(10)
  expect(new Set(users.map(({ username: name }) => name)).size).toBe(10)
  expect(users.filter(({ username: name }) => name === username)).toHaveLength(1)
})

const isTransaction = ({ command }: { command: string }) => command.startsWith('TransactWrite')
const died = async (when: 'before' | 'after', work: () => Promise<unknown>): Promise<void> => {
  let hits = 0
  using _ = onStoreCall({
    [when]: async (call: { command: string }) => {
      if (!isTransaction(call)) return
      hits++
      throw new Error('killed')
    },
  })
  await expect(work()).rejects.toThrow('killed')
  expect(hits).toBe(1)
}

test.each(['before', 'after'] as const)(
  'a death %s the only write of a first sign-in leaves nobody or one user: the next one is that user',
  async (when) => {
    const identity = externalIdentity()
    const before = await total()
    await died(when, () => signInExternal(idp, identity, newOrigin()))
    expect(await total()).toBe(before + Number(when === 'after'))
    const { id } = await arrive(identity)
    expect(await total()).toBe(before + 1)
    expect(await actionsOf(id)).toEqual(['user.create'])

    const changed = { ...identity, groups: ['ops'] }
    await died(when, () => signInExternal(idp, changed, newOrigin()))
    expect(await arrive(changed)).toMatchObject({ id, roles: ['Operator'], version: 2 })
    expect(await actionsOf(id)).toEqual(['user.create', 'user.update'])
  },
)

test('somebody who is removed while signing in is somebody new, and never half a user', async () => {
  const identity = externalIdentity({ groups: ['ops'] })
  const { id } = await arrive(identity)
  const happened = beforeCommand(/^TransactWrite/, () => UserAdmin.remove(caller, id))
  const after = await arrive({ ...identity, groups: [] })
  expect(happened()).toBe(true)
  expect([after.id === id, after.roles]).toEqual([false, ['Viewer']])
  expect(await find(caller.organisationId, id)).toBeUndefined()
})

test('a removed user leaves name and link: who signs in again is somebody new with the same name', async () => {
  const identity = externalIdentity()
  const first = await callerOfTokens(await signInExternal(idp, identity, newOrigin()))
  const tokens = await signInExternal(idp, identity, newOrigin())
  await UserAdmin.remove(caller, first.userId)
  expect(await get(keys.externalIdentity(idp.id, sha256(identity.subject)))).toBeUndefined()
  await expectError(refresh(tokens), 'invalid_refresh_token')
  const again = await arrive(identity)
  expect([again.id === first.userId, again.username]).toEqual([false, identity.username])
})

test('a link that leads to nobody is taken over', async () => {
  const identity = externalIdentity()
  const { id, organisationId } = await arrive(identity)
  await transact([remove(keys.user(organisationId, id)), remove(keys.username(identity.username))])
  const again = await arrive(identity)
  expect(again.id).not.toBe(id)
  expect(await arrive(identity)).toMatchObject({ id: again.id })
})

const failing = (username: string) =>
  countStoreCalls(() => errorCodeOf(signIn({ username, password: 'wrong' }, newOrigin())))

test('no password fits a user of a provider, whatever it is; it costs what a wrong one costs', async () => {
  const { username } = await arrive(externalIdentity())
  const local = await UserAdmin.create(caller, userRequest())
  for (const tried of [password, 'undefined', '', ' ']) {
    await expectError(signIn({ username, password: tried }, newOrigin()), 'invalid_credentials')
  }
  expect(await failing(username)).toBe(await failing(local.username))
})
