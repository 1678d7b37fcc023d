import { onSchedule } from '@platform/http/schedule'
import { supervise } from '@platform/worker/modules/supervise'

export const handler = onSchedule('heartbeat', supervise)
