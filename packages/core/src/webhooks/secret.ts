import { createHmac, hkdfSync } from 'node:crypto'
import { webhookRootKey } from '../signing/keys.ts'

/** Webhook secrets are not stored, but derived from the root key, the webhook's id and a version for rotation. */

/** The input of a derived secret. */
export interface SecretOf {
  id: string
  secretVersion: number
}

async function keyOf({ id, secretVersion }: SecretOf): Promise<Buffer> {
  const master = Buffer.from(await webhookRootKey(), 'base64url')
  return Buffer.from(hkdfSync('sha256', master, '', `webhook ${id} ${secretVersion}`, 32))
}

/** The secret in its public form: `whsec_` and base64 (Standard Webhooks). */
export const secretOf = async (webhook: SecretOf): Promise<string> =>
  `whsec_${(await keyOf(webhook)).toString('base64')}`

/** Signature headers of a body at a time, by Standard Webhooks. `messageId` is the same at every attempt. */
export async function signedHeaders(webhook: SecretOf, messageId: string, timeSeconds: number, body: string) {
  const hmac = createHmac('sha256', await keyOf(webhook)).update(`${messageId}.${timeSeconds}.${body}`)
  return {
    'webhook-id': messageId,
    'webhook-timestamp': String(timeSeconds),
    'webhook-signature': `v1,${hmac.digest('base64')}`,
  }
}
