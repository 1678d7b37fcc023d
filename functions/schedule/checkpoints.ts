import { writeCheckpoints } from '@platform/core/audit/checkpoint-target'
import { scheduled } from '@platform/http/schedule'

export const handler = scheduled('checkpoints', writeCheckpoints, 'debug')
