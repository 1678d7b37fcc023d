import { createHmac } from 'node:crypto'
import { moduleRootKey } from '@platform/core/signing/keys'

/** The shared secret of the platform and one deployment; derived, so that it need not be stored. */
export const tokenOf = async (deploymentId: string): Promise<string> =>
  createHmac('sha256', await moduleRootKey())
    .update(deploymentId)
    .digest('base64url')
