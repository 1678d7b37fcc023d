import { createHmac, hkdfSync } from 'node:crypto'
import { webhookRootKey } from '../signing/keys.ts'

/** Webhook secrets are not stored but derived from the root key, the webhook's id and its secret version. */

export interface SecretSource {
  id: string
  secretVersion: number
}

async function signingKey({ id, secretVersion }: SecretSource): Promise<Buffer> {
  const rootKey = Buffer.from(await webhookRootKey(), 'base64url')
  return Buffer.from(hkdfSync('sha256', rootKey, '', `webhook ${id} ${secretVersion}`, 32))
}

/** `whsec_` and base64, as in Standard Webhooks. */
export const secretOf = async (webhook: SecretSource): Promise<string> =>
  `whsec_${(await signingKey(webhook)).toString('base64')}`

/** As in Standard Webhooks. `messageId` must be the same at every attempt. */
export async function signedHeaders(webhook: SecretSource, messageId: string, timeSeconds: number, body: string) {
  const hmac = createHmac('sha256', await signingKey(webhook)).update(`${messageId}.${timeSeconds}.${body}`)
  return {
    'webhook-id': messageId,
    'webhook-timestamp': String(timeSeconds),
    'webhook-signature': `v1,${hmac.digest('base64')}`,
  }
}
