import { started } from '../../test/support/world.ts'
import { type Effort, type Figure } from '../part.ts'
import { enrollments, setups } from './first-times.ts'
import { claims, removals } from './jobs.ts'
import { playAll } from './scenario.ts'
import { logouts, refreshes } from './sessions.ts'

/** All scenarios, one after the other. */
export async function runScenarios(effort: Effort): Promise<Figure[]> {
  await started()
  const figures: Figure[] = []
  for (const scenario of [setups, refreshes, logouts, enrollments, claims, removals]) {
    figures.push(...(await playAll(scenario, effort)))
  }
  return figures
}
