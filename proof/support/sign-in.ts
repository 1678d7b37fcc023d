import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { create } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { open } from '@platform/core/accounts/session'

/** Somebody who has just signed in to an organisation, without a password that takes its time. */
export async function newSession(organisationId = newId('org')) {
  const userId = newId('user')
  const row = { id: userId, organisationId, username: userId, email: 'u@example.com', roles: ['OrgAdmin'] }
  const user = { ...row, authProvider: 'local', createdAtMs: now(), version: 1 }
  const session = open(user)
  await transact([create(keys.user(organisationId, userId), user), ...session.steps])
  return { organisationId, userId, sessionId: session.id, ...(await session.tokens()) }
}
