import * as z from 'zod'
import { isNewer } from '../modules/catalog/select.ts'
import { iso } from '../clock.ts'
import { config } from '../config.ts'
import { type Item } from '../db/table.ts'
import { jsonString } from '../lib/json.ts'
import { version } from '../lib/version.ts'

/** What the last look at the releases has found (D50), for whoever only asks what is known. */

const Latest = z.object({ version: z.string(), releaseNotesUrl: z.string().exactOptional() })
const Refused = z.array(z.object({ version: z.string(), reason: z.string() }))

/** What a look has found. */
const CheckResult = z.object({
  latest: jsonString(Latest).optional(),
  refused: jsonString(Refused),
  checkedAtMs: z.number(),
})
export type CheckResult = z.infer<typeof CheckResult>

/** What the last look has found, where, and of which versions people were told, the last ones first. */
const CheckRecord = CheckResult.extend({ source: z.string(), told: z.array(z.string()), revision: z.number() })
export type CheckRecord = z.infer<typeof CheckRecord>

export const parseCheck = (item: Item | undefined): CheckRecord | undefined => item && CheckRecord.parse(item)

/** The newest release that can be applied to this one, where a look has found one. */
export const newerReleaseIn = ({ latest }: Pick<CheckResult, 'latest'>): CheckResult['latest'] =>
  latest !== undefined && isNewer(latest.version, version) ? latest : undefined

/** What is known without looking. What another repository had says nothing of the one that is set. */
export function lastKnownUpdate(row: CheckRecord | undefined) {
  const found = row?.source === config.PLAT_RELEASE_SOURCE ? row : undefined
  const newer = found && newerReleaseIn(found)
  return {
    currentVersion: version,
    latestVersion: newer?.version ?? version,
    updateAvailable: newer !== undefined,
    ...(found && { checkedAt: iso(found.checkedAtMs) }),
  }
}
