import { deadLetterOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { JobMessage } from '@platform/http/messages'

const loadHandlers = async () => (await import('@platform/worker/updates/handlers')).updateHandlers()

export const handler = consume(JobMessage, (message) => deadLetterOperation(message, loadHandlers))
