import { scheduled } from '@platform/http/schedule'
import { scan } from '@platform/modules/manager/scan'

export const handler = scheduled('catalog', scan)
