import { createHmac } from 'node:crypto'
import { moduleRootKey } from '@platform/core/signing/root-keys'

/** Derives the token of a deployment, so that the platform need not store a secret for each deployment. */
export const tokenOf = async (deploymentId: string): Promise<string> =>
  createHmac('sha256', await moduleRootKey())
    .update(deploymentId)
    .digest('base64url')
