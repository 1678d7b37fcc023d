import { system } from '../caller.ts'
import { commit } from '../outbox/commit.ts'
import { now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { patch, remove, type WriteItem } from '../db/table.ts'
import { transact } from '../db/transact.ts'
import { type Attempt, type DeliveryRecord, keyOf, pendingKey, pendingWrite, withAttempt } from './delivery-record.ts'
import { jitter } from '../id.ts'
import { resetFailures, originOf, type WebhookRecord } from './record.ts'

/** Evaluates attempts: retries of the delivery, and back-off of the webhook. */

/** Seconds between attempts: seven retries in about a day. */
export const retrySeconds: readonly number[] = [10, 60, 300, 1800, 7200, 28_800, 46_800]
/** Random share of each pause, so that receivers that failed together are not retried together. */
export const jitterShare = 0.2
/** The longest back-off of a failing receiver. */
const longestQuietSeconds = 7200
/** Consecutive failures that disable a webhook. */
export const failureLimit = 20

const isGone = ({ statusCode }: Attempt): boolean => statusCode === 410

/** The receiver works but rejects this event. 408 and 429 are about the receiver. */
const isRefused = ({ statusCode = 0 }: Attempt): boolean =>
  statusCode >= 400 && statusCode < 500 && statusCode !== 408 && statusCode !== 429

/** Records an attempt. Returns whether the webhook may receive the next delivery. One call. */
export const recordAttempt = (webhook: WebhookRecord, delivery: DeliveryRecord, attempt: Attempt): Promise<boolean> =>
  attempt.error === undefined ? recordSuccess(webhook, delivery, attempt) : recordFailure(webhook, delivery, attempt)

async function recordSuccess(webhook: WebhookRecord, delivery: DeliveryRecord, attempt: Attempt): Promise<boolean> {
  const refusal = await transact([
    ...moveSteps(delivery, attempt, { status: 'Delivered' }),
    ...(webhook.failures > 0 ? [patchLeased(webhook, resetFailures)] : []),
  ])
  // After a concurrent redelivery request it is delivered once more.
  return refusal === undefined || refusal.step === 0
}

async function recordFailure(webhook: WebhookRecord, delivery: DeliveryRecord, attempt: Attempt): Promise<boolean> {
  const afterAbout = jittered()
  const retry = retrySeconds[delivery.tries]
  const moved = moveSteps(
    delivery,
    attempt,
    retry === undefined ? { status: 'Failed' } : { status: 'Pending', nextAttemptAtMs: afterAbout(retry) },
  )
  const { outages } = webhook
  const failures = webhook.failures + 1
  if (failures >= failureLimit || isGone(attempt)) {
    await switchOff(webhook, moved, failures, isGone(attempt) ? 'answered 410 Gone' : `${failures} failures in a row`)
    return false
  }
  const isAlive = isRefused(attempt)
  const quietSeconds = Math.min(retrySeconds[outages] ?? longestQuietSeconds, longestQuietSeconds)
  const standing = isAlive ? { outages: 0 } : { outages: outages + 1, backOffUntilMs: afterAbout(quietSeconds) }
  await transact([...moved, patchLeased(webhook, { set: { failures, ...standing } })])
  return isAlive
}

/** Scales times from now by one random factor. */
function jittered(): (seconds: number) => number {
  const spread = 1 - jitterShare + 2 * jitterShare * jitter()
  return (seconds) => Math.round(now() + seconds * spread * 1000)
}

/** Pending deliveries stay and continue when the webhook is enabled again. */
async function switchOff(
  webhook: WebhookRecord,
  moved: readonly WriteItem[],
  failures: number,
  detail: string,
): Promise<void> {
  const { id, organisationId, url, createdBy } = webhook
  const off = {
    set: { isEnabled: false, disabledAtMs: now(), failures },
    remove: ['backOffUntilMs', 'leaseId', 'leaseUntilMs', 'duepk', 'duesk'],
  }
  await commit(system(organisationId), {
    writes: [...moved, patchLeased(webhook, off)],
    audit: { action: 'webhook.disable', resource: id, detail },
    events: [{ name: 'webhook.disabled', subject: id, data: { webhookId: id, url: originOf(url), createdBy } }],
  })
}

/** Fails if another worker has the lease or the webhook was removed. */
const patchLeased = ({ organisationId, id, leaseId }: WebhookRecord, change: Parameters<typeof patch>[1]): WriteItem =>
  patch(keys.webhook(organisationId, id), change, { leaseId: { is: leaseId } })

/** The writes that advance a delivery. The first one fails if it has changed. */
function moveSteps(
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
  const asRead = { status: { is: 'Pending' }, nextAttemptAtMs: { is: dueAtMs } }
  return [
    patch(keyOf(delivery), change, asRead),
    remove(pendingKey(delivery, dueAtMs)),
    ...(isPending ? [pendingWrite({ ...delivery, tries: tries + 1 }, nextAttemptAtMs)] : []),
  ]
}
