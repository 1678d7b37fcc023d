import { tendBatch } from '@platform/core/batch/tending'
import { consume } from '@platform/http/consume'
import { BatchMessage } from '@platform/http/message'

export const handler = consume(BatchMessage, tendBatch)
