import { createHmac, hkdfSync } from 'node:crypto'
import { webhookRootKey } from '../signing/keys.ts'

/**
 * Secrets of webhooks are not stored: each is derived of the master in Secrets Manager, the webhook's id, and a version that
 * a rotation would count up.
 */

/** What a secret is derived for. */
export interface SecretOf {
  id: string
  secretVersion: number
}

async function keyOf({ id, secretVersion }: SecretOf): Promise<Buffer> {
  const master = Buffer.from(await webhookRootKey(), 'base64url')
  return Buffer.from(hkdfSync('sha256', master, '', `webhook ${id} ${secretVersion}`, 32))
}

/** The secret as its owner is told it: `whsec_` and base64 (Standard Webhooks). */
export const secretOf = async (webhook: SecretOf): Promise<string> =>
  `whsec_${(await keyOf(webhook)).toString('base64')}`

/** The headers that sign a body at a time, as Standard Webhooks has them. `messageId` is the same at every attempt. */
export async function signedHeaders(webhook: SecretOf, messageId: string, timeSeconds: number, body: string) {
  const hmac = createHmac('sha256', await keyOf(webhook)).update(`${messageId}.${timeSeconds}.${body}`)
  return {
    'webhook-id': messageId,
    'webhook-timestamp': String(timeSeconds),
    'webhook-signature': `v1,${hmac.digest('base64')}`,
  }
}
