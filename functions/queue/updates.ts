import { performOperation } from '@platform/core/operation-work'
import { consume } from '@platform/http/consume'
import { UpdateMessage } from '@platform/http/message'
import { moduleKinds } from '@platform/modules/manager/operation'
import { scan } from '@platform/modules/manager/scan'
import { updateKinds } from '@platform/updates/operation'

const kinds = { ...moduleKinds(), ...updateKinds() }

/** May take 300 seconds: images travel, hooks take their time, and a release is watched before it serves everybody. */
export const handler = consume(UpdateMessage, (message) =>
  'scan' in message ? scan() : performOperation(message, kinds),
)
