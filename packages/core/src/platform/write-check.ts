import type { HealthCheck } from '@platform/contract/health'
import { iso, now } from '../clock.ts'
import { config } from '../config.ts'
import * as keys from '../db/keys.ts'
import { type Item, update, upsert, type WriteItem } from '../db/table.ts'

/**
 * A schedule writes the current time, so that readiness reflects writes without a write for each probe. A failure
 * cannot be stored; it shows as a time that is too old.
 */

const writeCheckChange = () => ({ set: { checkedAtMs: now() } })

export const writeCheckWrite = (): WriteItem => upsert(keys.writeCheck(), writeCheckChange())

export async function checkWrites(): Promise<void> {
  await update(keys.writeCheck(), writeCheckChange())
}

/** Exceeded after two consecutive late or failed checks. */
const maxAgeMs = config.PLAT_WRITE_CHECK_INTERVAL_SECONDS * 2500

/** A time too far in the future, which occurs after the clock was set back, also makes the check Unhealthy. */
export function writeCheckView(item: Item | undefined): HealthCheck {
  const checkedAtMs = Number(item?.['checkedAtMs'] ?? 0)
  const isHealthy = Math.abs(now() - checkedAtMs) < maxAgeMs
  return {
    name: 'database-writes',
    status: isHealthy ? 'Healthy' : 'Unhealthy',
    tags: ['critical'],
    source: 'platform',
    durationMs: 0,
    checkedAt: iso(checkedAtMs),
    description: isHealthy
      ? 'The store accepts writes'
      : 'No write has succeeded since the time of this check. Check the disk space and the log',
  }
}
