import { type ModuleHealth } from '@platform/contract/module'
import { type Item } from '@platform/core/db/table'
import { type ModuleHealthRow, stored, type StoredCheck } from '@platform/core/module-row'

/** Beats in a row without an answer, after which a module is Unhealthy (D44). */
export const missedLimit = 2

/** What the checks and the missed beats of a module make of its health (D36). What is for information alone never counts. */
export function healthOf(checks: readonly StoredCheck[], missed: number): ModuleHealth {
  if (missed >= missedLimit) return 'Unhealthy'
  const counting = checks.filter(({ status, tags }) => status !== 'Healthy' && !isInformational(tags))
  const isDown = counting.some(({ status, tags }) => status === 'Unhealthy' && tags.includes('critical'))
  if (isDown) return 'Unhealthy'
  return counting.length > 0 ? 'Degraded' : 'Healthy'
}

/** A check that says nothing of itself counts. */
const isInformational = (tags: StoredCheck['tags']): boolean =>
  tags.includes('informational') && !tags.includes('critical') && !tags.includes('degradable')

/** The stored form of what a beat has found. */
export const healthItem = ({ checks, missed, ...row }: Omit<ModuleHealthRow, 'health'>): Item => ({
  ...row,
  missed,
  health: healthOf(checks, missed),
  checks: stored(checks),
})
