import { deadLetterOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { JobMessage } from '@platform/http/messages'
import { platformOperations } from '@platform/worker/handlers'

export const handler = consume(JobMessage, (message) => deadLetterOperation(message, platformOperations))
