import { checkRegularly } from '@platform/core/updates/check'
import { onSchedule } from '@platform/http/schedule'

export const handler = onSchedule('updates', checkRegularly)
