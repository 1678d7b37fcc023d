import { consume } from '@platform/http/consume'
import { UpdateMessage } from '@platform/http/message'
import { perform } from '@platform/modules/manager/operation'
import { scan } from '@platform/modules/manager/scan'

/** May take 300 seconds: images travel, and hooks take their time. */
export const handler = consume(UpdateMessage, (message) => ('scan' in message ? scan() : perform(message)))
