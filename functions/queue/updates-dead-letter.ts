import { deadLetterOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { JobMessage } from '@platform/http/messages'

// Loaded on demand, for a fast cold start.
const loadHandlers = async () => (await import('@platform/worker/updates/handlers')).updateHandlers()

export const handler = consume(JobMessage, (message) => deadLetterOperation(message, loadHandlers))
