import { enqueueProjections, outboxRetryMs } from '../aws/queues.ts'
import { currentTimes, isRecent, now, type Times } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item, tryUpdate, upsert, type WriteItem } from '../db/table.ts'
import { BoundedCache } from '../lib/bounded-cache.ts'
import { readOldestRecords } from './record.ts'

/**
 * If the message about an outbox record is lost, the sweep finds the record by the check of its outbox: one due item
 * for each organisation with changes. The transaction of a change schedules the check, unless this process has
 * scheduled a check that comes later than the transaction ends.
 */

/** The times at which this process scheduled the last check of an organisation. */
const scheduledTimes = new BoundedCache<Times>(10_000)

/** Half of the time until a check; the other half covers a slow transaction and the difference of two clocks. */
const coveredMs = outboxRetryMs / 2

function isScheduled(organisationId: string): boolean {
  const last = scheduledTimes.get(organisationId)
  return last !== undefined && isRecent(last, coveredMs)
}

export function outboxCheck(organisationId: string): { writes: WriteItem[]; confirm: () => void } {
  if (isScheduled(organisationId)) return { writes: [], confirm: () => undefined }
  const times = currentTimes()
  return {
    writes: [
      upsert(keys.outboxCheck(organisationId), {
        set: { id: organisationId, ...keys.dueIndexKeys(organisationId, now() + outboxRetryMs) },
      }),
    ],
    confirm: () => scheduledTimes.set(organisationId, times),
  }
}

/** Starts the projections if the outbox has records, else removes the check unless a change has scheduled it again. */
export async function checkOutbox({ id, duesk }: Item): Promise<void> {
  const organisationId = String(id)
  const items = await readOldestRecords(organisationId, 1)
  if (items.length > 0) await enqueueProjections(organisationId)
  // After the clock was set back, the sweep also reads checks that are not due.
  else if (keys.dueMsOf(String(duesk)) > now()) return
  const dueChange = { set: keys.dueIndexKeys(organisationId, now() + outboxRetryMs) }
  const change = items.length > 0 ? dueChange : { remove: ['duepk', 'duesk'] }
  await tryUpdate(keys.outboxCheck(organisationId), change, { duesk: { is: duesk } })
}
