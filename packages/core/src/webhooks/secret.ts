import { createHmac, hkdfSync } from 'node:crypto'
import { webhookRootKey } from '../signing/root-keys.ts'
import { type PreviousSecret, unexpiredSecrets } from './record.ts'

/** Webhook secrets are not stored but derived from the root key, the webhook's id and its secret version. */

export interface SecretSource {
  id: string
  secretVersion: number
}

async function signingKey({ id, secretVersion }: SecretSource): Promise<Buffer> {
  const rootKey = Buffer.from(await webhookRootKey(), 'base64url')
  return Buffer.from(hkdfSync('sha256', rootKey, '', `webhook ${id} ${secretVersion}`, 32))
}

/** Returns `whsec_` and the secret in Base64, as in Standard Webhooks. */
export const secretOf = async (webhook: SecretSource): Promise<string> =>
  `whsec_${(await signingKey(webhook)).toString('base64')}`

interface Signer extends SecretSource {
  previousSecrets?: readonly PreviousSecret[]
}

/** Follows Standard Webhooks, with one signature per valid secret. `messageId` must be the same at every attempt. */
export async function signedHeaders(
  { id, secretVersion, previousSecrets = [] }: Signer,
  messageId: string,
  timeSeconds: number,
  body: string,
) {
  const versions = [secretVersion, ...unexpiredSecrets(previousSecrets).map(({ version }) => version)]
  const keys = await Promise.all(versions.map((version) => signingKey({ id, secretVersion: version })))
  const signatures = keys.map((key) =>
    createHmac('sha256', key).update(`${messageId}.${timeSeconds}.${body}`).digest('base64'),
  )
  return {
    'webhook-id': messageId,
    'webhook-timestamp': String(timeSeconds),
    'webhook-signature': signatures.map((signature) => `v1,${signature}`).join(' '),
  }
}
