import { forward } from '@platform/http/proxy/proxy'
import { askModule } from '@platform/worker/modules/call'

export const handler = forward(askModule)
