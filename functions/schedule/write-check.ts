import { checkWrites } from '@platform/core/platform/write-check'
import { onSchedule } from '@platform/http/schedule'

export const handler = onSchedule('write-check', checkWrites, 'debug')
