import * as z from 'zod'
import { isNewer } from '../modules/catalog/select.ts'
import { iso } from '../clock.ts'
import { config } from '../config.ts'
import type { Item } from '../db/table.ts'
import { jsonString } from '../lib/validate.ts'
import { version } from '../lib/version.ts'

const Latest = z.object({ version: z.string(), releaseNotesUrl: z.string() })
const RejectedReleases = z.array(z.object({ version: z.string(), reason: z.string() }))

const CheckResult = z.object({
  latest: jsonString(Latest).optional(),
  refused: jsonString(RejectedReleases),
  checkedAtMs: z.number(),
})
export type CheckResult = z.infer<typeof CheckResult>

/** `announced`: versions for which an event was emitted, newest first. `source`: the repository that was checked. */
const CheckRecord = CheckResult.extend({ source: z.string(), announced: z.array(z.string()), revision: z.number() })
export type CheckRecord = z.infer<typeof CheckRecord>

export const parseCheck = (item: Item | undefined): CheckRecord | undefined => item && CheckRecord.parse(item)

export const newerReleaseIn = ({ latest }: Pick<CheckResult, 'latest'>): CheckResult['latest'] =>
  latest !== undefined && isNewer(latest.version, version) ? latest : undefined

export function lastKnownUpdate(record: CheckRecord | undefined) {
  const result = record?.source === config.PLAT_RELEASE_SOURCE ? record : undefined
  const newestRelease = result && newerReleaseIn(result)
  return {
    currentVersion: version,
    latestVersion: newestRelease?.version ?? version,
    updateAvailable: newestRelease !== undefined,
    ...(result && { checkedAt: iso(result.checkedAtMs) }),
  }
}
