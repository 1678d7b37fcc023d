import { moduleProxy } from '@platform/http/proxy/proxy'
import { callModule } from '@platform/worker/modules/call'

export const handler = moduleProxy(callModule)
