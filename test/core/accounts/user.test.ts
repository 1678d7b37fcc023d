import { beforeAll, expect, test } from 'vitest'
import { permissionsOf } from '@platform/contract/permission'
import { refresh, signIn } from '@platform/core/accounts/session'
import { verifyAccessToken } from '@platform/core/signing/access-token'
import * as User from '@platform/core/accounts/user'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import {
  createColleague,
  userRequest,
  password,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  newOrigin,
  createTenantAdministrator,
} from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { auditEntries, drainOutbox } from '../support/outbox.ts'

let platform: SignedInUser
let tenant: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
  tenant = await createTenantAdministrator(platform.caller)
})

const firstPage = { page: 1, pageSize: 100 }
const signInOf = (username: string, secret = password) => signIn({ username, password: secret }, newOrigin())

test('a new user is listed, read and signs in with what the roles grant', async () => {
  const request = userRequest(['Operator', 'Auditor', 'Operator'])
  const created = await UserAdmin.create(tenant.caller, request)
  expect(created).toEqual({
    id: expect.stringMatching(/^user_/),
    username: request.username,
    email: request.email,
    roles: ['Operator', 'Auditor'],
    organisationId: tenant.caller.organisationId,
    authProvider: 'local',
    createdAt: expect.any(String),
    permissions: permissionsOf(['Operator', 'Auditor']),
  })
  expect(await User.read(tenant.caller, created.id)).toEqual(created)
  expect((await User.list(tenant.caller, firstPage)).items[0]).toEqual(created)
  const caller = await verifyAccessToken((await signInOf(request.username.toUpperCase())).accessToken)
  expect(await User.profile(caller)).toEqual(created)
  expect([...caller.permissions]).toEqual(created.permissions)
})

test('the administrator that setup made is in the list', async () => {
  const { items, totalCount } = await User.list(platform.caller, firstPage)
  expect(items.map(({ id }) => id)).toContain(platform.id)
  expect(totalCount).toBe(items.length)
})

test('any page of users costs two calls, and pages neither repeat nor skip', async () => {
  const { caller } = await createTenantAdministrator(platform.caller)
  for (let index = 0; index < 6; index++) await UserAdmin.create(caller, userRequest())
  const { items, totalCount } = await User.list(caller, firstPage)
  expect([items.length, totalCount]).toEqual([7, 7])
  const pages = await Promise.all([1, 2, 3, 4].map((page) => User.list(caller, { page, pageSize: 2 })))
  expect(pages.flatMap((page) => page.items)).toEqual(items)
  expect(await countStoreCalls(() => User.list(caller, { page: 4, pageSize: 2 }))).toBe(2)
})

test('another organisation neither sees nor touches a user, not even the platform administrator', async () => {
  const { id } = await UserAdmin.create(tenant.caller, userRequest())
  const stranger = await createTenantAdministrator(platform.caller)
  for (const { caller } of [stranger, platform]) {
    expect(await errorCodeOf(User.read(caller, id))).toBe('user_not_found')
    expect(await errorCodeOf(UserAdmin.update(caller, id, { roles: ['Viewer'] }))).toBe('user_not_found')
    expect(await errorCodeOf(UserAdmin.endUserSessions(caller, id))).toBe('user_not_found')
    expect(await errorCodeOf(UserAdmin.remove(caller, id))).toBe('user_not_found')
  }
  expect((await User.read(tenant.caller, id)).roles).toEqual(['Operator'])
})

test('of four that take one name at once, in two organisations and whatever its case, one wins', async () => {
  const other = await createTenantAdministrator(platform.caller)
  for (let round = 0; round < 5; round++) {
    const name = `Wanted-${round}`
    const callers = [tenant, other, tenant, other].map(({ caller }) => caller)
    const outcomes = await Promise.all(
      callers.map((caller, index) =>
        errorCodeOf(UserAdmin.create(caller, userRequest(['Viewer'], index % 2 === 0 ? name : name.toLowerCase()))),
      ),
    )
    expect(outcomes.toSorted()).toEqual(['no error', ...Array(3).fill('username_taken')])
  }
})

test('a removed user cannot sign in or refresh, and the name is free again', async () => {
  const gone = await createColleague(tenant.caller, 'ClusterAdmin')
  const before = (await User.list(tenant.caller, firstPage)).totalCount
  await UserAdmin.remove(tenant.caller, gone.id)
  expect(await errorCodeOf(User.read(tenant.caller, gone.id))).toBe('user_not_found')
  expect(await errorCodeOf(UserAdmin.remove(tenant.caller, gone.id))).toBe('user_not_found')
  expect(await errorCodeOf(signIn(gone.credentials, newOrigin()))).toBe('invalid_credentials')
  expect(await errorCodeOf(refresh(gone))).toBe('invalid_refresh_token')
  expect(await errorCodeOf(User.profile(gone.caller))).toBe('unauthenticated')
  const { items, totalCount } = await User.list(tenant.caller, firstPage)
  expect([totalCount, items.length, items.some(({ id }) => id === gone.id)]).toEqual([before - 1, before - 1, false])
  await UserAdmin.create(tenant.caller, userRequest(['Viewer'], gone.username))
  expect(await errorCodeOf(refresh(gone))).toBe('invalid_refresh_token')
})

test('a changed role counts from the next refresh on', async () => {
  const person = await createColleague(tenant.caller, 'ClusterAdmin')
  const changed = await UserAdmin.update(tenant.caller, person.id, { roles: ['Viewer'], email: 'new@example.com' })
  expect(changed).toMatchObject({ roles: ['Viewer'], email: 'new@example.com', permissions: permissionsOf(['Viewer']) })
  expect(await UserAdmin.update(tenant.caller, person.id, {})).toEqual(changed)
  const { accessToken } = await refresh(person)
  expect([...(await verifyAccessToken(accessToken)).permissions]).toEqual(permissionsOf(['Viewer']))
})

test('what was changed of a user is on record, the e-mail too', async () => {
  const { id, email } = await UserAdmin.create(tenant.caller, userRequest(['Viewer']))
  await UserAdmin.update(tenant.caller, id, { email: 'new@example.com' })
  await drainOutbox(tenant.caller.organisationId)
  const entries = (await auditEntries(tenant.caller)).filter(({ resource }) => resource === id)
  expect(entries.at(-1)).toMatchObject({ action: 'user.update', detail: expect.stringContaining(`${email} → new@`) })
})

test('a password that an administrator sets replaces the old one and ends every session', async () => {
  const person = await createColleague(tenant.caller, 'Viewer')
  const second = await signInOf(person.username)
  await UserAdmin.update(tenant.caller, person.id, { password: 'another long sentence' })
  for (const tokens of [person, second]) expect(await errorCodeOf(refresh(tokens))).toBe('invalid_refresh_token')
  expect(await errorCodeOf(signInOf(person.username))).toBe('invalid_credentials')
  const third = await signInOf(person.username, 'another long sentence')
  expect(await refresh(third)).toMatchObject({ tokenType: 'Bearer' })
})

test('changes of one user at the same moment all happen, one after another', async () => {
  const { id } = await UserAdmin.create(tenant.caller, userRequest(['Viewer']))
  await Promise.all([
    UserAdmin.update(tenant.caller, id, { email: 'one@example.com' }),
    UserAdmin.update(tenant.caller, id, { roles: ['Operator'] }),
    UserAdmin.endUserSessions(tenant.caller, id),
  ])
  expect(await User.read(tenant.caller, id)).toMatchObject({ email: 'one@example.com', roles: ['Operator'] })
})
