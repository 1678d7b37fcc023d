import { enqueueProjections, outboxRetryMs } from '../aws/queues.ts'
import { elapsedMs, now } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, query, tryUpdate, upsert, type WriteItem } from '../db/table.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'

/**
 * If the message about an outbox record is lost, the sweep finds the record by the check of its outbox: one due item for
 * each organisation with changes. The transaction of a change schedules the check, unless this process has scheduled a
 * check that comes later than the transaction ends.
 */

const scheduledUntilMs = new BoundedCache<number>(10_000)

export function outboxCheck(organisationId: string): { writes: WriteItem[]; confirm: () => void } {
  if (elapsedMs() < (scheduledUntilMs.get(organisationId) ?? 0)) return { writes: [], confirm: () => undefined }
  // The rest of the time covers a slow transaction and the difference of two clocks.
  const untilMs = elapsedMs() + outboxRetryMs / 2
  return {
    writes: [
      upsert(keys.outboxCheck(organisationId), {
        set: { id: organisationId, ...keys.due(organisationId, now() + outboxRetryMs) },
      }),
    ],
    confirm: () => scheduledUntilMs.set(organisationId, untilMs),
  }
}

/** Removes the check if the outbox is empty, unless a change schedules it again. */
export async function checkOutbox({ id, duesk }: Item): Promise<void> {
  const organisationId = String(id)
  const { items } = await query({ pk: keys.outbox(organisationId, '').pk, limit: 1 })
  if (items.length > 0) await enqueueProjections(organisationId)
  // After the clock was set back, the sweep is early.
  else if (keys.dueTimeOf(String(duesk)) > now()) return
  const later = { set: keys.due(organisationId, now() + outboxRetryMs) }
  const change = items.length > 0 ? later : { remove: ['duepk', 'duesk'] }
  await tryUpdate(keys.outboxCheck(organisationId), change, { duesk: { is: duesk } })
}
