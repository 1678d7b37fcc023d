import { onSchedule } from '@platform/http/schedule'
import { scan } from '@platform/worker/modules/scan'

export const handler = onSchedule('catalog', scan)
