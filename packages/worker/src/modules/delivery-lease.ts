import { now, nowSeconds } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, tryUpdate } from '@platform/core/db/table'
import { newNonce } from '@platform/core/id'
import { eventRetentionSeconds } from '@platform/core/modules/event-projection'
import * as z from 'zod'

/** One worker at a time delivers events to a module, which keeps them in order. Its progress is kept. */

/** Longer than the processing of a message. A killed worker delays the module's events by at most this time. */
const leaseMs = 60_000

/** The state of event delivery to a module. */
export interface Progress {
  /** Consecutive failures: the module was unreachable or rejected its events. */
  failures: number
  /** No delivery before this time. */
  backOffUntilMs: number
  /** Events up to this sort key are delivered one by one, to identify the failing one. */
  carefulTo: string
}

const StoredLease = z.object({
  holder: z.string().optional(),
  failures: z.number().default(0),
  backOffUntilMs: z.number().default(0),
  carefulTo: z.string().default(''),
})

export type DeliveryLease = Progress & { moduleId: string; holder: string }

/** Acquires the lease; undefined if another worker holds it. One call, or two if an acknowledgement was lost. */
export async function acquireDelivery(moduleId: string): Promise<DeliveryLease | undefined> {
  const [key, holder] = [keys.moduleDelivery(moduleId), newNonce()]
  const set = { holder, untilMs: now() + leaseMs, ttl: nowSeconds() + 2 * eventRetentionSeconds }
  const item = (await tryUpdate(key, { set }, { untilMs: { absentOrAtMost: now() } })) ?? (await get(key))
  const stored = StoredLease.parse(item ?? {})
  return stored.holder === holder ? { ...stored, moduleId, holder } : undefined
}

/** Releases the lease and stores the progress; no effect if another worker has taken over. One call. */
export async function releaseDelivery({
  moduleId,
  holder,
  failures,
  backOffUntilMs,
  carefulTo,
}: DeliveryLease): Promise<void> {
  const change = { set: { failures, backOffUntilMs, carefulTo }, remove: ['holder', 'untilMs'] }
  await tryUpdate(keys.moduleDelivery(moduleId), change, { holder: { is: holder } })
}
