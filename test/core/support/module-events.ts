import { runningModule } from './module-platform.ts'
import { commit } from '@platform/core/outbox/commit'
import { newId } from '@platform/core/id'
import { drainOutbox } from './outbox.ts'
import { advanceClock } from './notifications.ts'

/** What happens, and who hears of it. */

const second = 1000

let times = 0
/** Time passes until whoever tells of events knows who has subscribed: each test begins at the same time again. */
export const refreshSubscriptions = async () => advanceClock(++times * 10 * second)

/** A module that runs and has subscribed; what its installation has told is booked. */
export async function subscriber(subscribes: string[] = ['platform.user.created']) {
  const module = await runningModule({ subscribes })
  await refreshSubscriptions()
  return module
}

export const userCreated = (subject = newId('user')) => ({
  name: 'user.created' as const,
  subject,
  data: { userId: subject, username: 'ada', roles: [] },
})

/** Things happen in an organisation, each for itself, and are booked; answers what they happened to. */
export async function publishUserCreated(organisationId: string, count = 1): Promise<string[]> {
  const subjects = Array.from({ length: count }, () => newId('user'))
  for (const subject of subjects) {
    await commit({ kind: 'system', organisationId }, { writes: [], events: [userCreated(subject)], isEnqueued: true })
    advanceClock(1)
  }
  await drainOutbox(organisationId)
  return subjects
}
