import { assetBytes } from '@platform/http/asset'
import { servePortal } from '@platform/http/portal/serve'

export const handler = servePortal(() => assetBytes('portal.pack'))
