import { createSecretOnce, readSecret } from '../aws/secrets.ts'
import { platformError } from '../error.ts'
import { generateKey, keySecret, PrivateKey } from './private-key.ts'

/** The key that signs checkpoints of audit trails. It is never replaced, because checkpoints are kept for years. */

let cachedKey: PrivateKey | undefined

/** Concurrent first starts create the same key. */
export async function ensureAuditKey(): Promise<void> {
  await createSecretOnce(keySecret('audit-key'), JSON.stringify(generateKey()))
}

export async function auditKey(): Promise<PrivateKey> {
  const text = cachedKey === undefined ? await readSecret(keySecret('audit-key')) : undefined
  cachedKey ??= text === undefined ? undefined : PrivateKey.parse(JSON.parse(text))
  if (cachedKey === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  return cachedKey
}
