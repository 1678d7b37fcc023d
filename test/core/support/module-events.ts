import { runningModule } from './module-platform.ts'
import * as keys from '@platform/core/db/keys'
import { upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { commit } from '@platform/core/outbox/commit'
import { newId } from '@platform/core/id'
import { drainOutbox } from './outbox.ts'
import { advanceClock } from '../../support/clock.ts'

let refreshes = 0
/**
 * Advances the clock until cached subscriptions expire. The advance grows with each call, because the clock is reset
 * after a test.
 */
export const refreshSubscriptions = async () => advanceClock(++refreshes * 10_000)

/** The publisher of the modules of `runningModule`. */
export const publisher = 'key tests'

export const allowEvents = async (
  organisationId: string,
  moduleId: string,
  events: string[],
  consent: { enabled?: boolean; publisher?: string | undefined } = {},
) => {
  const set = { [`module:${moduleId}`]: JSON.stringify({ enabled: true, events, publisher, ...consent }) }
  await transact([upsert(keys.organisationModules(organisationId), { set })])
}

const subscribers: { id: string; subscribes: string[] }[] = []

export async function subscriber(subscribes: string[] = ['platform.user.created']) {
  const module = await runningModule({ subscribes })
  subscribers.push({ id: module.id, subscribes })
  await allowEvents(module.caller.organisationId, module.id, subscribes)
  await refreshSubscriptions()
  return module
}

export const userCreated = (subject = newId('user')) => ({
  name: 'user.created' as const,
  subject,
  data: { userId: subject, username: 'ada', roles: [] },
})

export async function publishUserCreated(organisationId: string, count = 1): Promise<string[]> {
  for (const { id, subscribes } of subscribers) await allowEvents(organisationId, id, subscribes)
  const subjects = Array.from({ length: count }, () => newId('user'))
  for (const subject of subjects) {
    await commit({ kind: 'system', organisationId }, { writes: [], events: [userCreated(subject)], isEnqueued: true })
    advanceClock(1)
  }
  await drainOutbox(organisationId)
  return subjects
}
