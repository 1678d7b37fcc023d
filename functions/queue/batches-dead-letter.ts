import { buryBatch } from '@platform/core/job/dead-letter'
import { consume } from '@platform/http/consume'
import { BatchMessage } from '@platform/http/message'

export const handler = consume(BatchMessage, buryBatch)
