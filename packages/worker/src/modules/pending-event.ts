import { CloudEvent } from '@platform/contract/event'
import { nowSeconds } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { removeAll, transact } from '@platform/core/db/transact'
import { query, remove } from '@platform/core/db/table'
import { log } from '@platform/core/log'
import * as z from 'zod'

/** Pending events of a module, as stored by the outbox projection. */

const StoredEvent = z.object({
  sk: z.string(),
  event: z.string().transform((text) => CloudEvent.parse(JSON.parse(text))),
  ttl: z.number(),
  /** Failures in individual delivery. */
  tries: z.number().default(0),
})
export type PendingEvent = z.infer<typeof StoredEvent>

const pageSize = 50

/** The next events, oldest first; undefined if none. Drops expired and unreadable events. One call, or two. */
export async function nextEvents(moduleId: string): Promise<PendingEvent[] | undefined> {
  const { items } = await query({ ...keys.moduleEvents(moduleId), limit: pageSize })
  if (items.length === 0) return undefined
  const parsed = items.flatMap((item) => StoredEvent.safeParse(item).data ?? [])
  const pending = parsed.filter(({ ttl }) => ttl > nowSeconds())
  const pendingKeys = new Set<unknown>(pending.map(({ sk }) => sk))
  const dropped = items.flatMap(({ sk }) => (pendingKeys.has(sk) ? [] : [String(sk)]))
  if (dropped.length > 0) {
    log('warn', 'Dropped expired or unreadable module events', { moduleId, dropped: dropped.length })
    await transact(dropped.map((sk) => remove(keys.moduleEvent(moduleId, sk))))
  }
  return pending
}

/** Whether a module has pending events. One call. */
export async function hasEvents(moduleId: string): Promise<boolean> {
  const { items } = await query({ ...keys.moduleEvents(moduleId), limit: 1 })
  return items.length > 0
}

/** Removes all pending events of a removed module. */
export async function deleteEvents(moduleId: string): Promise<void> {
  await removeAll(keys.moduleEvents(moduleId))
  await transact([remove(keys.moduleDelivery(moduleId))])
}
