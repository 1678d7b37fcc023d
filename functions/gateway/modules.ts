import { moduleProxy } from '@platform/http/proxy/proxy'
import { askModule } from '@platform/worker/modules/call'

export const handler = moduleProxy(askModule)
