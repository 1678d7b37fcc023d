import { consume } from '@platform/http/consume'
import { ModuleMessage } from '@platform/http/messages'
import { deliverWaiting } from '@platform/modules/manager/deliver'

export const handler = consume(ModuleMessage, ({ moduleId }) => deliverWaiting(moduleId))
