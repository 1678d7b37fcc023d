import { sweepAndPlanChecks } from '@platform/core/background/sweep'
import { scheduled } from '@platform/http/schedule'

export const handler = scheduled('sweep', sweepAndPlanChecks)
