import { buryOperation } from '@platform/core/operation-work'
import { consume } from '@platform/http/consume'
import { UpdateMessage } from '@platform/http/message'
import { moduleKinds } from '@platform/modules/manager/operation'
import { updateKinds } from '@platform/updates/operation'

const kinds = { ...moduleKinds(), ...updateKinds() }

/** A scan that failed comes again by itself. */
export const handler = consume(UpdateMessage, async (message) => {
  if ('jobId' in message) await buryOperation(message, kinds)
})
