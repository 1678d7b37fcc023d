import { expect, test } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { get, remove, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { requireCurrentRights, reauthorize } from '@platform/core/accounts/current-rights'
import { parseUser } from '@platform/core/accounts/user'
import { callsOf } from '../../support/store-calls.ts'
import { callerOf, refusalOf } from '../../support/world.ts'

/** Who a caller is at this moment, whatever its token says. */

test('a caller stands by its user, its session and its roles, and what else is needed comes with that', async () => {
  const caller = await callerOf()
  const other = await callerOf()
  const wanted = [keys.user(other.organisationId, other.userId), keys.user(other.organisationId, newId('user'))]
  const [{ user, rights }, found, nothing] = await reauthorize(caller, ['users:admin', 'jobs:read'], wanted)
  expect([user.id, found?.['id'], nothing]).toEqual([caller.userId, other.userId, undefined])
  expect(rights).toEqual(caller.permissions)
  expect(await callsOf(() => reauthorize(caller, [], wanted))).toBe(1)
})

test('rights are what both the roles of now and the token allow', async () => {
  const caller = await callerOf()
  const narrow = { ...caller, permissions: new Set(['jobs:read', 'platform:admin'] as const) }
  const [{ rights }] = await reauthorize(narrow, [])
  expect([...rights]).toEqual(['jobs:read'])
  await update(keys.user(caller.organisationId, caller.userId), { set: { roles: ['Auditor'] } })
  await expect(reauthorize(caller, ['jobs:read', 'users:admin'])).rejects.toMatchObject({
    code: 'forbidden',
    extra: { requiredPermission: 'users:admin' },
  })
})

test('whose user or session is no more stands nowhere; a program needs no session', async () => {
  const [first, second] = [await callerOf(), await callerOf()]
  await transact([remove(keys.session(first.sessionId))])
  expect(await refusalOf(reauthorize(first, []))).toBe('unauthenticated')
  expect(await refusalOf(reauthorize({ ...first, sessionId: '', tokenId: newId('tok') }, []))).toBe(
    'nothing was refused',
  )
  await update(keys.session(second.sessionId), { set: { revokedAtMs: 1 } })
  expect(await refusalOf(reauthorize(second, []))).toBe('unauthenticated')
  await transact([remove(keys.user(second.organisationId, second.userId))])
  expect(await refusalOf(reauthorize({ ...second, tokenId: newId('tok') }, []))).toBe('unauthenticated')
})

test('a user of an identity provider that is gone or disabled stands nowhere', async () => {
  const caller = await callerOf()
  await update(keys.user(caller.organisationId, caller.userId), { set: { authProvider: newId('idp') } })
  expect(await refusalOf(reauthorize(caller, []))).toBe('unauthenticated')
})

test('who lacks rights hears the first that is missing', async () => {
  const { organisationId, userId } = await callerOf()
  const user = parseUser((await get(keys.user(organisationId, userId)))!)
  const who = { user, rights: new Set(['jobs:read'] as const) }
  expect(requireCurrentRights(who, ['jobs:read'])).toBeUndefined()
  expect(() => requireCurrentRights(who, ['jobs:read', 'jobs:write', 'users:admin'])).toThrow(
    expect.objectContaining({ code: 'forbidden', extra: { requiredPermission: 'jobs:write' } }),
  )
})
