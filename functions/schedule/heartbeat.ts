import { scheduled } from '@platform/http/schedule'
import { supervise } from '@platform/worker/modules/supervise'

export const handler = scheduled('heartbeat', supervise)
