import { forward } from '@platform/http/forward'
import { askModule } from '@platform/modules/manager/traffic'

export const handler = forward(askModule)
