import { type ModuleHealth } from '@platform/contract/module'
import { type Item } from '@platform/core/db/table'
import { type ModuleHealthRecord, serialise, type StoredCheck } from '@platform/core/modules/record'

/** Beats in a row without an answer, after which a module is Unhealthy (D44). */
export const missedLimit = 2

type Standing = Pick<ModuleHealthRecord, 'checks' | 'missed' | 'missedRuns'>

/** The most beats in a row that the module, or one of its jobs, has missed. */
export const missedOf = ({ missed, missedRuns }: Omit<Standing, 'checks'>): number =>
  Math.max(missed, ...Object.values(missedRuns))

/** What the checks and the missed beats of a module make of its health (D36). What is for information alone never counts. */
export function healthOf({ checks, ...beats }: Standing): ModuleHealth {
  if (missedOf(beats) >= missedLimit) return 'Unhealthy'
  const counting = checks.filter(({ status, tags }) => status !== 'Healthy' && !isInformational(tags))
  const isDown = counting.some(({ status, tags }) => status === 'Unhealthy' && tags.includes('critical'))
  if (isDown) return 'Unhealthy'
  return counting.length > 0 ? 'Degraded' : 'Healthy'
}

/** A check that says nothing of itself counts. */
const isInformational = (tags: StoredCheck['tags']): boolean =>
  tags.includes('informational') && !tags.includes('critical') && !tags.includes('degradable')

/** The stored form of what a beat has found. */
export const healthItem = (row: Omit<ModuleHealthRecord, 'health'>): Item => ({
  ...row,
  health: healthOf(row),
  checks: serialise(row.checks),
})
