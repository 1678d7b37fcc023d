import { sweep } from '@platform/core/sweep'
import { scheduled } from '@platform/http/schedule'

export const handler = scheduled('sweep', sweep)
