import { type Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import * as Notification from '@platform/core/notifications/notification'
import { type Effects } from '@platform/core/outbox/record'
import { afterEach } from 'vitest'
import { callerOf } from '../../support/world.ts'
import { settle, tell } from './books.ts'

/** What people are told of, and how they see it. */

export const minute = 60_000

let shiftedMs = 0
/** Time passes; it goes back when the test ends. */
export const later = (ms: number): void => {
  shiftedMs += ms
  shiftClock(ms)
}
afterEach(() => later(-shiftedMs))

/** What a user sees. */
export const read = (caller: Caller, query: Partial<Parameters<typeof Notification.list>[1]> = {}) =>
  Notification.list(caller, { unreadOnly: false, page: 1, pageSize: 100, ...query })
export const types = async (caller: Caller): Promise<string[]> => (await read(caller)).items.map(({ type }) => type)
export const ids = async (caller: Caller): Promise<string[]> => (await read(caller)).items.map(({ id }) => id)

export const event = (name: string, data: object): Effects => ({
  events: [{ name, subject: newId('clus'), data } as any],
})
export const jobFailed = (createdBy: string, more: object = {}): Effects =>
  event('job.failed', {
    jobId: newId('job'),
    clusterId: newId('clus'),
    type: 'InvokeScript',
    createdBy,
    previousStatus: 'Running',
    statusReason: 'exit_nonzero',
    exitCode: 3,
    ...more,
  })

/** Something happens and is booked. */
export async function happens(organisationId: string, ...told: Effects[]): Promise<void> {
  for (const each of told) await tell({ kind: 'system', organisationId }, each)
  await settle(organisationId)
}

/** An organisation with a user of every kind. */
export async function people() {
  const organisationId = newId('org')
  const [admin, operator, auditor] = await Promise.all([
    callerOf(organisationId, 'OrgAdmin'),
    callerOf(organisationId, 'Operator'),
    callerOf(organisationId, 'Auditor'),
  ])
  return { organisationId, admin, operator, auditor, nobody: await callerOf(organisationId, 'Unknown') }
}
