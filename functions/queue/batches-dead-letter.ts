import { deadLetterBatch } from '@platform/core/jobs/dead-letter'
import { consume } from '@platform/http/consume'
import { BatchMessage } from '@platform/http/messages'

export const handler = consume(BatchMessage, deadLetterBatch)
