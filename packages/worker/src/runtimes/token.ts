import { createHmac } from 'node:crypto'
import { moduleMaster } from '@platform/core/signing/keys'

/** The token that the platform and one deployment know each other by: derived, so that nothing has to keep it. */
export const tokenOf = async (deploymentId: string): Promise<string> =>
  createHmac('sha256', await moduleMaster())
    .update(deploymentId)
    .digest('base64url')
