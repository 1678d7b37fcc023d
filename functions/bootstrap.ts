import { bootstrap } from '@platform/core/bootstrap'
import { scheduled } from '@platform/http/schedule'

export const handler = scheduled('bootstrap', bootstrap)
