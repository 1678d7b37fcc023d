import type { EventOf } from '@platform/contract/event'
import { runProjections } from '@platform/core/outbox/run-projections'
import type { Caller } from '@platform/core/caller'
import { commit } from '@platform/core/outbox/commit'
import { config } from '@platform/core/config'
import { newId } from '@platform/core/id'
import * as Delivery from '@platform/core/webhooks/delivery-log'
import * as Webhook from '@platform/core/webhooks/webhook'
import { webhookProjection } from '@platform/core/webhooks/projection'
import { Webhook as Verifier } from 'standardwebhooks'
import { vi } from 'vitest'
import { advanceClock } from '../../support/clock.ts'
import type { ReceivedRequest, Receiver } from './receivers.ts'
import { messagesSentBy } from './messages.ts'

export const newEvent = (name: 'job.completed' | 'cluster.deleted' = 'cluster.deleted'): EventOf => {
  if (name === 'cluster.deleted') {
    const clusterId = newId('clus')
    return { name, subject: clusterId, data: { clusterId, name: 'berlin-1' } }
  }
  const jobId = newId('job')
  const createdBy = newId('user')
  return {
    name,
    subject: jobId,
    data: { jobId, type: 'InvokeScript', createdBy, previousStatus: 'Running', exitCode: 0 },
  }
}

/** Commits each event in a transaction of its own. */
export async function commitEvents(caller: Caller, ...events: EventOf[]): Promise<void> {
  for (const event of events) {
    // Ids of one millisecond have no order.
    advanceClock(1)
    await commit(caller, { writes: [], events: [event] })
  }
}

export async function publishEvents(caller: Caller, ...events: EventOf[]): Promise<void> {
  await commitEvents(caller, ...events)
  await runProjections(caller.organisationId, [webhookProjection])
}

export async function subscribe(caller: Caller, receiver: Receiver, events = ['*']) {
  const webhook = await Webhook.create(caller, { url: receiver.url, events })
  return { ...webhook, reference: { organisationId: caller.organisationId, webhookId: webhook.id } }
}

export const deliveriesOf = async (caller: Caller, webhookId: string) =>
  (await Delivery.list(caller, webhookId, { page: 1, pageSize: 100 })).items

/** Returns the event of a request, verified by the reference implementation of Standard Webhooks at the given time. */
export function verifyDelivery(secret: string, { headers, body }: ReceivedRequest, atMs = Date.now()): any {
  vi.useFakeTimers({ toFake: ['Date'], now: atMs })
  try {
    return new Verifier(secret).verify(body, headers as Record<string, string>)
  } finally {
    vi.useRealTimers()
  }
}

export const webhooksEnqueuedBy = async (work: () => Promise<unknown>): Promise<string[]> =>
  (await messagesSentBy(config.PLAT_QUEUE_WEBHOOKS, work)).map(({ webhookId }) => webhookId)
