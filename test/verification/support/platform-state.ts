import { open } from '@platform/core/accounts/session'
import { now } from '@platform/core/clock'
import { batchRemove, create, type Item } from '@platform/core/db/table'
import * as keys from '@platform/core/db/keys'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { bootstrap } from '@platform/core/platform/bootstrap'
import { readPendingRecords } from '../../core/support/outbox.ts'
import { readTable } from '../../support/read-table.ts'

/** Resets the platform to the state before setup. Keeps the access token keys, which every process has in memory. */
export async function resetPlatform(): Promise<void> {
  const { pk, sk } = keys.tokenKeys('access')
  const itemKeys = (await readTable()).map((item) => ({ pk: String(item['pk']), sk: String(item['sk']) }))
  await batchRemove(itemKeys.filter((key) => key.pk !== pk || key.sk !== sk))
  await bootstrap()
}

export function isSetUpOnce(items: readonly Item[]): boolean {
  const count = (matches: (pk: string, sk: string) => boolean) =>
    items.filter(({ pk, sk }) => matches(String(pk), String(sk))).length
  const counts = [
    count((pk) => pk === keys.organisation('').pk),
    count((pk) => pk.endsWith('#USER')),
    count((pk) => pk.startsWith(keys.username('').pk)),
    count((pk, sk) => pk.startsWith(keys.session('').pk) && sk === keys.session('').sk),
  ]
  const { sk } = keys.administrators('')
  const administrators = items.find((item) => item['sk'] === sk)
  return counts.every((each) => each === 1) && administrators?.['count'] === 1
}

/** Creates a user of a new organisation with a session, without hashing a password. */
export async function newSession() {
  const [organisationId, userId] = [newId('org'), newId('user')]
  const record = { id: userId, organisationId, username: userId, email: 'u@example.com', roles: ['OrgAdmin'] }
  const user = { ...record, authProvider: 'local', createdAtMs: now(), version: 1 }
  const session = open(user)
  await transact([create(keys.user(organisationId, userId), user), ...session.writes])
  return { organisationId, userId, sessionId: session.id, ...(await session.tokens()) }
}

export const readEventNames = async (organisationId: string): Promise<string[]> =>
  (await readPendingRecords(organisationId)).flatMap(({ events }) => events.map(({ name }) => name))

export const countEvents = async (organisationId: string, name: string): Promise<number> =>
  (await readEventNames(organisationId)).filter((each) => each === name).length
