import { deadLetterOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { InstallMessage } from '@platform/http/messages'

// Ignored scans do not need the handlers.
const loadHandlers = async () => (await import('@platform/worker/modules/handlers')).moduleHandlers()

/** Ignores scans: the schedule repeats a failed scan. */
export const handler = consume(InstallMessage, async (message) => {
  if ('jobId' in message) await deadLetterOperation(message, loadHandlers)
})
