import { buryBatch } from '@platform/core/jobs/dead-letter'
import { consume } from '@platform/http/consume'
import { BatchMessage } from '@platform/http/message'

export const handler = consume(BatchMessage, buryBatch)
