import * as z from 'zod'
import { isWithin, nowSeconds } from '../clock.ts'
import { unchangedCondition } from '../db/expression.ts'
import type { Key } from '../db/keys.ts'
import { type Item, tryUpdate } from '../db/table.ts'

/**
 * Sweeps may overlap, or repeat the work of one that stopped halfway. The last summary of an organisation is stored, so
 * that all these sweeps report a change with the same notification.
 */

const maxAgeMs = 600_000
const retentionSeconds = 86_400

const StoredSummary = z.object({ atMs: z.number(), summary: z.string() })

/** Returns undefined if no summary is stored, or if it is too old to be from an unfinished sweep. */
export function parseSummary<Summary>(item: Item | undefined, schema: z.ZodType<Summary>) {
  const storedSummary = item && StoredSummary.parse(item)
  if (storedSummary === undefined || !isWithin(storedSummary.atMs, maxAgeMs)) return undefined
  return { atMs: storedSummary.atMs, summary: schema.parse(JSON.parse(storedSummary.summary)) }
}

/** Returns false if another sweep has replaced the item that was read. */
export async function replaceSummary(key: Key, readItem: Item | undefined, atMs: number, summary: unknown) {
  const set = { atMs, summary: JSON.stringify(summary), ttl: nowSeconds() + retentionSeconds }
  return (await tryUpdate(key, { set }, { atMs: unchangedCondition(readItem?.['atMs']) })) !== undefined
}
