import { deadLetterOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { UpdateMessage } from '@platform/http/messages'
import { operationHandlers } from '@platform/worker/handlers'

/** Ignores scans: the schedule repeats a failed scan. */
export const handler = consume(UpdateMessage, async (message) => {
  if ('jobId' in message) await deadLetterOperation(message, operationHandlers)
})
