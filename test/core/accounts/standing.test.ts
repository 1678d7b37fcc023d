import { expect, test } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { get, remove, update } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { requireCurrentRights, reauthorize } from '@platform/core/accounts/current-rights'
import { parseUser } from '@platform/core/accounts/user'
import { countStoreCalls } from '../../support/store-calls.ts'
import { newCaller, errorCodeOf } from '../../support/fixtures.ts'

/** Who a caller is at this moment, whatever its token says. */

test('a caller stands by its user, its session and its roles, and what else is needed comes with that', async () => {
  const caller = await newCaller()
  const other = await newCaller()
  const wanted = [keys.user(other.organisationId, other.userId), keys.user(other.organisationId, newId('user'))]
  const [{ user, rights }, found, nothing] = await reauthorize(caller, ['users:admin', 'jobs:read'], wanted)
  expect([user.id, found?.['id'], nothing]).toEqual([caller.userId, other.userId, undefined])
  expect(rights).toEqual(caller.permissions)
  expect(await countStoreCalls(() => reauthorize(caller, [], wanted))).toBe(1)
})

test('rights are what both the roles of now and the token allow', async () => {
  const caller = await newCaller()
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
  const [first, second] = [await newCaller(), await newCaller()]
  await transact([remove(keys.session(first.sessionId))])
  expect(await errorCodeOf(reauthorize(first, []))).toBe('unauthenticated')
  expect(await errorCodeOf(reauthorize({ ...first, sessionId: '', tokenId: newId('tok') }, []))).toBe('no error')
  await update(keys.session(second.sessionId), { set: { revokedAtMs: 1 } })
  expect(await errorCodeOf(reauthorize(second, []))).toBe('unauthenticated')
  await transact([remove(keys.user(second.organisationId, second.userId))])
  expect(await errorCodeOf(reauthorize({ ...second, tokenId: newId('tok') }, []))).toBe('unauthenticated')
})

test('a user of an identity provider that is gone or disabled stands nowhere', async () => {
  const caller = await newCaller()
  await update(keys.user(caller.organisationId, caller.userId), { set: { authProvider: newId('idp') } })
  expect(await errorCodeOf(reauthorize(caller, []))).toBe('unauthenticated')
})

test('who lacks rights hears the first that is missing', async () => {
  const { organisationId, userId } = await newCaller()
  const user = parseUser((await get(keys.user(organisationId, userId)))!)
  const who = { user, rights: new Set(['jobs:read'] as const) }
  expect(requireCurrentRights(who, ['jobs:read'])).toBeUndefined()
  expect(() => requireCurrentRights(who, ['jobs:read', 'jobs:write', 'users:admin'])).toThrow(
    expect.objectContaining({ code: 'forbidden', extra: { requiredPermission: 'jobs:write' } }),
  )
})
