import { rollbackSteps, type UpdatePlan, updateSteps } from '@platform/core/updates/record'
import { type TrafficPercent } from './target/port.ts'

/** The shares that a release gets one after the other, as the steps of its job say. */
export const trafficStepsOf = ({ action }: UpdatePlan): TrafficPercent[] => {
  const steps: readonly string[] = action === 'apply' ? updateSteps : rollbackSteps
  return ([10, 50, 100] as const).filter((share) => steps.includes(`shift-${share}`))
}
