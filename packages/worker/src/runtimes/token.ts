import { createHmac } from 'node:crypto'
import { moduleRootKey } from '@platform/core/signing/keys'

/** The token that the platform and one deployment know each other by: derived, so that nothing has to keep it. */
export const tokenOf = async (deploymentId: string): Promise<string> =>
  createHmac('sha256', await moduleRootKey())
    .update(deploymentId)
    .digest('base64url')
