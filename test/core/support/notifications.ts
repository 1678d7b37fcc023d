import { type Caller } from '@platform/core/caller'
import { shiftClock } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import * as Notification from '@platform/core/notifications/notification'
import { type Effects } from '@platform/core/outbox/record'
import { afterEach } from 'vitest'
import { newCaller } from '../../support/fixtures.ts'
import { drainOutbox, commitEffects } from './outbox.ts'

/** What people are told of, and how they see it. */

export const minute = 60_000

let shiftedMs = 0
/** Time passes; it goes back when the test ends. */
export const advanceClock = (ms: number): void => {
  shiftedMs += ms
  shiftClock(ms)
}
afterEach(() => advanceClock(-shiftedMs))

/** What a user sees. */
export const listNotifications = (caller: Caller, query: Partial<Parameters<typeof Notification.list>[1]> = {}) =>
  Notification.list(caller, { unreadOnly: false, page: 1, pageSize: 100, ...query })
export const notificationTypes = async (caller: Caller): Promise<string[]> =>
  (await listNotifications(caller)).items.map(({ type }) => type)
export const notificationIds = async (caller: Caller): Promise<string[]> =>
  (await listNotifications(caller)).items.map(({ id }) => id)

export const eventEffect = (name: string, data: object): Effects => ({
  events: [{ name, subject: newId('clus'), data } as any],
})
export const jobFailedEffect = (createdBy: string, more: object = {}): Effects =>
  eventEffect('job.failed', {
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
export async function commitAndDrain(organisationId: string, ...effects: Effects[]): Promise<void> {
  for (const each of effects) await commitEffects({ kind: 'system', organisationId }, each)
  await drainOutbox(organisationId)
}

/** An organisation with a user of every kind. */
export async function organisationWithUsers() {
  const organisationId = newId('org')
  const [admin, operator, auditor] = await Promise.all([
    newCaller(organisationId, 'OrgAdmin'),
    newCaller(organisationId, 'Operator'),
    newCaller(organisationId, 'Auditor'),
  ])
  return { organisationId, admin, operator, auditor, withoutPermissions: await newCaller(organisationId, 'Unknown') }
}
