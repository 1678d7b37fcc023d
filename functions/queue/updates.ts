import { runOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { UpdateMessage } from '@platform/http/messages'
import { operationHandlers } from '@platform/worker/handlers'

/** Runs for up to 300 seconds: image downloads, lifecycle hooks and the bake time of a release. */
export const handler = consume(UpdateMessage, async (message) => {
  if ('jobId' in message) return runOperation(message, operationHandlers)
  const { scan } = await import('@platform/worker/modules/scan')
  return scan()
})
