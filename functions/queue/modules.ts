import { consume } from '@platform/http/consume'
import { ModuleMessage } from '@platform/http/message'
import { deliverWaiting } from '@platform/modules/manager/deliver'

export const handler = consume(ModuleMessage, ({ moduleId }) => deliverWaiting(moduleId))
