import { system } from './caller.ts'
import { commit } from './change.ts'
import { now } from './clock.ts'
import * as keys from './db/keys.ts'
import { patch, remove, type Step, transact } from './db/table.ts'
import { type Attempt, type DeliveryRow, keyOf, waitKey, waitStep, withAttempt } from './delivery-row.ts'
import { jitter } from './id.ts'
import { siteOf, type WebhookRow } from './webhook-row.ts'

/** What an attempt means: for the delivery, which is tried again, and for the webhook, which is left alone for a while (D39). */

/** Seconds from a failed attempt to the next one: seven retries in about a day. */
export const retrySeconds: readonly number[] = [10, 60, 300, 1800, 7200, 28_800, 46_800]
/** Each wait is so much shorter or longer, at random: receivers that failed together are not met together again. */
export const jitterShare = 0.2
/** A receiver that has failed often is tried at least so often, with whatever waits for it. */
const longestQuietSeconds = 7200
/** Failures in a row that switch a webhook off. */
export const failureLimit = 20

/** Stores what became of an attempt. Answers whether the webhook may be given the next delivery. One call. */
export async function recordAttempt(webhook: WebhookRow, delivery: DeliveryRow, attempt: Attempt): Promise<boolean> {
  if (attempt.error === undefined) return recordSuccess(webhook, delivery, attempt)
  await recordFailure(webhook, delivery, attempt)
  return false
}

async function recordSuccess(webhook: WebhookRow, delivery: DeliveryRow, attempt: Attempt): Promise<boolean> {
  const recovered = { set: { failures: 0 }, remove: ['quietUntilMs'] }
  const refusal = await transact([
    ...moveSteps(delivery, attempt, { status: 'Delivered' }),
    ...(webhook.failures > 0 ? [patchLeased(webhook, recovered)] : []),
  ])
  // Where it was asked for once more meanwhile, it is delivered once more.
  return refusal === undefined || refusal.step === 0
}

async function recordFailure(webhook: WebhookRow, delivery: DeliveryRow, attempt: Attempt): Promise<void> {
  const spread = 1 - jitterShare + 2 * jitterShare * jitter()
  const inMs = (seconds: number): number => Math.round(now() + seconds * spread * 1000)
  const retry = retrySeconds[delivery.tries]
  const moved = moveSteps(
    delivery,
    attempt,
    retry === undefined ? { status: 'Failed' } : { status: 'Pending', nextAttemptAtMs: inMs(retry) },
  )
  const failures = webhook.failures + 1
  if (failures >= failureLimit) return switchOff(webhook, moved, failures)
  const quietSeconds = Math.min(retrySeconds[webhook.failures] ?? longestQuietSeconds, longestQuietSeconds)
  await transact([...moved, patchLeased(webhook, { set: { failures, quietUntilMs: inMs(quietSeconds) } })])
}

/** What waits stays Pending: it goes out when somebody switches the webhook on again. */
async function switchOff(webhook: WebhookRow, moved: readonly Step[], failures: number): Promise<void> {
  const { id, organisationId, url, createdBy } = webhook
  const off = {
    set: { isEnabled: false, disabledAtMs: now(), failures },
    remove: ['quietUntilMs', 'leaseId', 'leaseUntilMs', 'duepk', 'duesk'],
  }
  await commit(system(organisationId), {
    steps: [...moved, patchLeased(webhook, off)],
    audit: { action: 'webhook.disable', resource: id, detail: `${failures} failures in a row` },
    events: [{ name: 'webhook.disabled', subject: id, data: { webhookId: id, url: siteOf(url), createdBy } }],
  })
}

/** Refused where the lease has gone to somebody else, or the webhook is gone. */
const patchLeased = ({ organisationId, id, leaseId }: WebhookRow, change: Parameters<typeof patch>[1]): Step =>
  patch(keys.webhook(organisationId, id), change, { leaseId: { is: leaseId } })

/** The steps that move a delivery on; the first is refused where it is not as it was read. */
function moveSteps(
  delivery: DeliveryRow,
  attempt: Attempt,
  { status, nextAttemptAtMs }: Pick<DeliveryRow, 'status' | 'nextAttemptAtMs'>,
): Step[] {
  const { nextAttemptAtMs: dueAtMs = 0, tries } = delivery
  const isPending = nextAttemptAtMs !== undefined
  const change = {
    set: { status, nextAttemptAtMs, tries: tries + 1, attempts: withAttempt(delivery, attempt) },
    ...(!isPending && { remove: ['nextAttemptAtMs'] }),
  }
  const asRead = { status: { is: 'Pending' }, nextAttemptAtMs: { is: dueAtMs } }
  return [
    patch(keyOf(delivery), change, asRead),
    remove(waitKey(delivery, dueAtMs)),
    ...(isPending ? [waitStep(delivery, nextAttemptAtMs)] : []),
  ]
}
