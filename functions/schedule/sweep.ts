import { sweep } from '@platform/core/cluster/sweep'
import { scheduled } from '@platform/http/schedule'

export const handler = scheduled('sweep', sweep)
