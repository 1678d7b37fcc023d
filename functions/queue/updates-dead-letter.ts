import { consume } from '@platform/http/consume'
import { UpdateMessage } from '@platform/http/message'
import { bury } from '@platform/modules/manager/operation'

/** A scan that failed comes again by itself. */
export const handler = consume(UpdateMessage, async (message) => {
  if ('jobId' in message) await bury(message)
})
