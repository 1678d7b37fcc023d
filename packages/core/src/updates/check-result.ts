import * as z from 'zod'
import { isNewer } from '../modules/catalog/select.ts'
import { iso } from '../clock.ts'
import { config } from '../config.ts'
import { type Item } from '../db/table.ts'
import { jsonText } from '../lib/json.ts'
import { version } from '../lib/version.ts'

/** What the last look at the releases has found (D50), for whoever only asks what is known. */

const Latest = z.object({ version: z.string(), releaseNotesUrl: z.string().exactOptional() })
const Refused = z.array(z.object({ version: z.string(), reason: z.string() }))

/** What a look has found. */
const Found = z.object({
  latest: jsonText(Latest).optional(),
  refused: jsonText(Refused),
  checkedAtMs: z.number(),
})
export type Found = z.infer<typeof Found>

/** What the last look has found, where, and of which versions people were told, the last ones first. */
const CheckRow = Found.extend({ source: z.string(), told: z.array(z.string()), revision: z.number() })
export type CheckRow = z.infer<typeof CheckRow>

export const parseCheck = (item: Item | undefined): CheckRow | undefined => item && CheckRow.parse(item)

/** The newest release that can be applied to this one, where a look has found one. */
export const newerOf = ({ latest }: Pick<Found, 'latest'>): Found['latest'] =>
  latest !== undefined && isNewer(latest.version, version) ? latest : undefined

/** What is known without looking. What another repository had says nothing of the one that is set. */
export function knownUpdate(row: CheckRow | undefined) {
  const found = row?.source === config.PLAT_RELEASE_SOURCE ? row : undefined
  const newer = found && newerOf(found)
  return {
    currentVersion: version,
    latestVersion: newer?.version ?? version,
    updateAvailable: newer !== undefined,
    ...(found && { checkedAt: iso(found.checkedAtMs) }),
  }
}
