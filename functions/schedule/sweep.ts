import { sweepAndPlanChecks } from '@platform/core/background/sweep'
import { onSchedule } from '@platform/http/schedule'

export const handler = onSchedule('sweep', sweepAndPlanChecks)
