import { runOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { InstallMessage } from '@platform/http/messages'

// A scan does not need the handlers.
const loadHandlers = async () => (await import('@platform/worker/modules/handlers')).moduleHandlers()

/**
 * Runs for up to 300 seconds, because it downloads images and calls lifecycle hooks. This function has no permission to
 * change the platform's functions.
 */
export const handler = consume(InstallMessage, async (message) => {
  if ('jobId' in message) return runOperation(message, loadHandlers)
  const { scan } = await import('@platform/worker/modules/scan')
  return scan()
})
