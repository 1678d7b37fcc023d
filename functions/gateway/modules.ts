import { forward } from '@platform/http/proxy/proxy'
import { askModule } from '@platform/modules/manager/traffic'

export const handler = forward(askModule)
