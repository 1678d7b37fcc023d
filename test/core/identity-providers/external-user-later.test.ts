import { type Caller } from '@platform/core/caller'
import { resolveExternalUser, openExternalSession } from '@platform/core/identity-providers/external-user'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import { refresh } from '@platform/core/accounts/session'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { beforeAll, expect, test } from 'vitest'
import { setUpPlatform, newOrigin, expectError } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { pendingRecords } from '../support/outbox.ts'
import { callerOfTokens, storeProvider, externalIdentity } from '../support/providers.ts'

let caller: Caller
let idp: ProviderRecord
beforeAll(async () => {
  caller = (await setUpPlatform()).caller
  idp = await storeProvider(caller.organisationId)
})

const actionsOf = async (userId: string) =>
  (await pendingRecords(caller.organisationId)).flatMap(({ audit }) => (audit?.resource === userId ? audit.action : []))

test('a user can be made first and get its session later; only once it is still there', async () => {
  const identity = externalIdentity({ groups: ['ops'] })
  const reference = await resolveExternalUser(idp, identity, newOrigin())
  expect(await countStoreCalls(() => resolveExternalUser(idp, identity, newOrigin()))).toBe(2)
  expect(await resolveExternalUser(idp, identity, newOrigin())).toEqual(reference)
  expect(await actionsOf(reference.userId)).toEqual(['user.create'])
  let tokens: Awaited<ReturnType<typeof openExternalSession>> | undefined
  expect(await countStoreCalls(async () => void (tokens = await openExternalSession(reference, newOrigin(), [])))).toBe(
    2,
  )
  const opened = await callerOfTokens(tokens ?? { accessToken: '' })
  expect(opened).toMatchObject(reference)
  await refresh(tokens ?? { refreshToken: '' })
  await UserAdmin.remove(caller, reference.userId)
  await expectError(openExternalSession(reference, newOrigin(), []), 'sign_in_code_invalid')
})
