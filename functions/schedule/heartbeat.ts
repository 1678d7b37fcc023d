import { scheduled } from '@platform/http/schedule'
import { supervise } from '@platform/modules/manager/supervise'

export const handler = scheduled('heartbeat', supervise)
