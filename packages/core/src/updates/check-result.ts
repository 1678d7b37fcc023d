import * as z from 'zod'
import { isNewer } from '../modules/catalog/select.ts'
import { iso } from '../clock.ts'
import { config } from '../config.ts'
import { type Item } from '../db/table.ts'
import { jsonString } from '../lib/validate.ts'
import { version } from '../lib/version.ts'

/** The result of the last update check, for reads without a check. */

const Latest = z.object({ version: z.string(), releaseNotesUrl: z.string().exactOptional() })
const Refused = z.array(z.object({ version: z.string(), reason: z.string() }))

/** The result of a check. */
const CheckResult = z.object({
  latest: jsonString(Latest).optional(),
  refused: jsonString(Refused),
  checkedAtMs: z.number(),
})
export type CheckResult = z.infer<typeof CheckResult>

/** The last result, its source, and the announced versions, newest first. */
const CheckRecord = CheckResult.extend({ source: z.string(), told: z.array(z.string()), revision: z.number() })
export type CheckRecord = z.infer<typeof CheckRecord>

export const parseCheck = (item: Item | undefined): CheckRecord | undefined => item && CheckRecord.parse(item)

/** The newest applicable release of a check, if newer than this version. */
export const newerReleaseIn = ({ latest }: Pick<CheckResult, 'latest'>): CheckResult['latest'] =>
  latest !== undefined && isNewer(latest.version, version) ? latest : undefined

/** The last result without a new check. Results of another repository do not count. */
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
