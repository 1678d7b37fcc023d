import { readAsset } from '@platform/http/asset'
import { servePortal } from '@platform/http/portal/serve'

export const handler = servePortal(() => readAsset('portal.pack'))
