import { type OperationHandlers, deadLetterOperation } from '@platform/core/operations/run'
import { consume } from '@platform/http/consume'
import { UpdateMessage } from '@platform/http/messages'

/** What installs and updates is loaded by the first message that leads to something to do. */
const kinds = async (): Promise<OperationHandlers> => {
  const [{ moduleHandlers }, { updateHandlers }] = await Promise.all([
    import('@platform/worker/modules/handlers'),
    import('@platform/worker/updates/handlers'),
  ])
  return { ...moduleHandlers(), ...updateHandlers() }
}

/** A scan that failed comes again by itself. */
export const handler = consume(UpdateMessage, async (message) => {
  if ('jobId' in message) await deadLetterOperation(message, kinds)
})
