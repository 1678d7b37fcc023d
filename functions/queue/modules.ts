import { consume } from '@platform/http/consume'
import { ModuleMessage } from '@platform/http/messages'
import { deliverPending } from '@platform/worker/modules/deliver-events'

export const handler = consume(ModuleMessage, ({ moduleId }) => deliverPending(moduleId))
