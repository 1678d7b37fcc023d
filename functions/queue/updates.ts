import { type OperationHandlers, runOperation } from '@platform/core/operations/run'
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

/** May take 300 seconds: images travel, hooks take their time, and a release is watched before it serves everybody. */
export const handler = consume(UpdateMessage, async (message) => {
  if ('jobId' in message) return runOperation(message, kinds)
  const { scan } = await import('@platform/worker/modules/scan')
  return scan()
})
