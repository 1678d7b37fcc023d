import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { isAhead, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { patch, remove, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import {
  type Attempt,
  type DeliveryRecord,
  deliveryKey,
  pendingKey,
  pendingWrite,
  withAttempt,
} from './delivery-record.ts'
import { jitter } from '../id.ts'
import { failureReset, originOf, type WebhookRecord } from './record.ts'

/** The pauses before the seven retries, which take about a day in total. */
export const retrySeconds: readonly number[] = [10, 60, 300, 1800, 7200, 28_800, 46_800]
/** The pauses vary randomly by up to this share, which spreads retries to receivers that failed together. */
export const jitterShare = 0.2
const maxBackOffSeconds = 7200
export const failureLimit = 20

const backOffSecondsAfter = (outageCount: number): number =>
  Math.min(retrySeconds[outageCount] ?? maxBackOffSeconds, maxBackOffSeconds)

export const isBackingOff = ({ backOffUntilMs, outages }: Pick<WebhookRecord, 'backOffUntilMs' | 'outages'>): boolean =>
  outages > 0 && isAhead(backOffUntilMs, backOffSecondsAfter(outages - 1) * 1000)

const isGone = ({ statusCode }: Attempt): boolean => statusCode === 410

/** Returns whether the receiver works but rejects this event. 408 and 429 concern the receiver itself. */
const isRejected = ({ statusCode = 0 }: Attempt): boolean =>
  statusCode >= 400 && statusCode < 500 && statusCode !== 408 && statusCode !== 429

/** Returns whether the webhook may receive the next delivery. */
export const recordAttempt = (webhook: WebhookRecord, delivery: DeliveryRecord, attempt: Attempt): Promise<boolean> =>
  attempt.error === undefined ? recordSuccess(webhook, delivery, attempt) : recordFailure(webhook, delivery, attempt)

async function recordSuccess(webhook: WebhookRecord, delivery: DeliveryRecord, attempt: Attempt): Promise<boolean> {
  const failure = await transact([
    ...updateWrites(delivery, attempt, { status: 'Delivered' }),
    ...(webhook.failures > 0 ? [leasedPatch(webhook, failureReset)] : []),
  ])
  // The first write fails if a redelivery was requested concurrently, so the event is delivered once more.
  return failure === undefined || failure.index === 0
}

async function recordFailure(webhook: WebhookRecord, delivery: DeliveryRecord, attempt: Attempt): Promise<boolean> {
  const timeAfter = createTimeAfter()
  const pauseSeconds = retrySeconds[delivery.tries]
  const writes = updateWrites(
    delivery,
    attempt,
    pauseSeconds === undefined ? { status: 'Failed' } : { status: 'Pending', nextAttemptAtMs: timeAfter(pauseSeconds) },
  )
  const { outages } = webhook
  const failures = webhook.failures + 1
  if (failures >= failureLimit || isGone(attempt)) {
    await disable(webhook, writes, failures, isGone(attempt) ? 'answered 410 Gone' : `${failures} consecutive failures`)
    return false
  }
  const isWorking = isRejected(attempt)
  const backOff = isWorking
    ? { outages: 0 }
    : { outages: outages + 1, backOffUntilMs: timeAfter(backOffSecondsAfter(outages)) }
  await transact([...writes, leasedPatch(webhook, { set: { failures, ...backOff } })])
  return isWorking
}

/** Returns a function from a pause to the time at which it ends. All pauses vary by the same random factor. */
function createTimeAfter(): (seconds: number) => number {
  const factor = 1 - jitterShare + 2 * jitterShare * jitter()
  return (seconds) => Math.round(now() + seconds * factor * 1000)
}

/** Keeps pending deliveries, which continue once the webhook is enabled again. */
async function disable(
  webhook: WebhookRecord,
  writes: readonly WriteItem[],
  failureCount: number,
  detail: string,
): Promise<void> {
  const { id, organisationId, url, createdBy } = webhook
  const change = {
    set: { isEnabled: false, disabledAtMs: now(), failures: failureCount },
    remove: ['backOffUntilMs', 'leaseId', 'leaseUntilMs', 'duepk', 'duesk'],
  }
  await commit(system(organisationId), {
    writes: [...writes, leasedPatch(webhook, change)],
    audit: { action: 'webhook.disable', resource: id, detail },
    events: [{ name: 'webhook.disabled', subject: id, data: { webhookId: id, url: originOf(url), createdBy } }],
  })
}

/** The write fails if another worker has the lease or the webhook was removed. */
const leasedPatch = ({ organisationId, id, leaseId }: WebhookRecord, change: Parameters<typeof patch>[1]): WriteItem =>
  patch(keys.webhook(organisationId, id), change, { leaseId: { is: leaseId } })

/** The first write fails if the delivery has changed. */
function updateWrites(
  delivery: DeliveryRecord,
  attempt: Attempt,
  { status, nextAttemptAtMs }: Pick<DeliveryRecord, 'status' | 'nextAttemptAtMs'>,
): WriteItem[] {
  const { nextAttemptAtMs: dueAtMs = 0, tries } = delivery
  const isPending = nextAttemptAtMs !== undefined
  const change = {
    set: { status, nextAttemptAtMs, tries: tries + 1, attempts: withAttempt(delivery, attempt) },
    ...(!isPending && { remove: ['nextAttemptAtMs'] }),
  }
  const condition = { status: { is: 'Pending' }, nextAttemptAtMs: { is: dueAtMs } }
  return [
    patch(deliveryKey(delivery), change, condition),
    remove(pendingKey(delivery, dueAtMs)),
    ...(isPending ? [pendingWrite({ ...delivery, tries: tries + 1 }, nextAttemptAtMs)] : []),
  ]
}
