import { scheduled } from '@platform/http/schedule'
import { scan } from '@platform/worker/modules/scan'

export const handler = scheduled('catalog', scan)
