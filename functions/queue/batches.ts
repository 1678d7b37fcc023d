import { advanceBatch } from '@platform/core/jobs/batches/advance'
import { consume } from '@platform/http/consume'
import { BatchMessage } from '@platform/http/messages'

export const handler = consume(BatchMessage, advanceBatch)
