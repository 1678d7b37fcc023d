import { type Caller } from '@platform/core/caller'
import { resolveExternalUser, openExternalSession } from '@platform/core/identity-providers/external-user'
import { type ProviderRecord } from '@platform/core/identity-providers/record'
import { refresh } from '@platform/core/accounts/session'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { beforeAll, expect, test } from 'vitest'
import { platformAdministrator, somewhere } from '../../support/people.ts'
import { callsOf } from '../../support/store-calls.ts'
import { refusalOf } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { callerOfTokens, provider, somebody } from '../support/providers.ts'

let caller: Caller
let idp: ProviderRecord
beforeAll(async () => {
  caller = (await platformAdministrator()).caller
  idp = await provider(caller.organisationId)
})

const actionsOf = async (userId: string) =>
  (await waitingRecords(caller.organisationId)).flatMap(({ audit }) => (audit?.resource === userId ? audit.action : []))

test('a user can be made first and get its session later; only once it is still there', async () => {
  const identity = somebody({ groups: ['ops'] })
  const reference = await resolveExternalUser(idp, identity, somewhere())
  expect(await callsOf(() => resolveExternalUser(idp, identity, somewhere()))).toBe(2)
  expect(await resolveExternalUser(idp, identity, somewhere())).toEqual(reference)
  expect(await actionsOf(reference.userId)).toEqual(['user.create'])
  let tokens: Awaited<ReturnType<typeof openExternalSession>> | undefined
  expect(await callsOf(async () => void (tokens = await openExternalSession(reference, somewhere(), [])))).toBe(2)
  const opened = await callerOfTokens(tokens ?? { accessToken: '' })
  expect(opened).toMatchObject(reference)
  await refresh(tokens ?? { refreshToken: '' })
  await UserAdmin.remove(caller, reference.userId)
  expect(await refusalOf(openExternalSession(reference, somewhere(), []))).toBe('sign_in_code_invalid')
})
