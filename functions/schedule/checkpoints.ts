import { writeCheckpoints } from '@platform/core/audit/checkpoint-target'
import { onSchedule } from '@platform/http/schedule'

export const handler = onSchedule('checkpoints', writeCheckpoints, 'debug')
