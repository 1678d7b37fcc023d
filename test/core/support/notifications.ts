import type { Caller } from '@platform/core/caller'
import { newId } from '@platform/core/id'
import * as Notification from '@platform/core/notifications/notification'
import type { Effects } from '@platform/core/outbox/record'
import { newCaller } from '../../support/fixtures.ts'
import { drainOutbox, commitEffects } from './outbox.ts'

export const minuteMs = 60_000

export const listNotifications = (caller: Caller, query: Partial<Parameters<typeof Notification.list>[1]> = {}) =>
  Notification.list(caller, { unreadOnly: false, page: 1, pageSize: 100, ...query })
export const readNotificationTypes = async (caller: Caller): Promise<string[]> =>
  (await listNotifications(caller)).items.map(({ type }) => type)
export const readNotificationIds = async (caller: Caller): Promise<string[]> =>
  (await listNotifications(caller)).items.map(({ id }) => id)

export const eventEffect = (name: string, data: object): Effects => ({
  events: [{ name, subject: newId('clus'), data } as any],
})
export const jobFailedEffect = (createdBy: string, overrides: object = {}): Effects =>
  eventEffect('job.failed', {
    jobId: newId('job'),
    clusterId: newId('clus'),
    type: 'InvokeScript',
    createdBy,
    previousStatus: 'Running',
    statusReason: 'exit_nonzero',
    exitCode: 3,
    ...overrides,
  })

export async function commitAndDrain(organisationId: string, ...effects: Effects[]): Promise<void> {
  for (const effect of effects) await commitEffects({ kind: 'system', organisationId }, effect)
  await drainOutbox(organisationId)
}

export async function organisationWithUsers() {
  const organisationId = newId('org')
  const roles = ['OrgAdmin', 'Operator', 'Auditor', 'Unknown']
  const users = await Promise.all(roles.map((role) => newCaller(organisationId, role)))
  const [admin, operator, auditor, withoutPermissions] = users as [Caller, Caller, Caller, Caller]
  return { organisationId, admin, operator, auditor, withoutPermissions }
}
