import { createSecretOnce, readSecret } from '../aws/secrets.ts'
import { platformError } from '../error.ts'
import { newSecret } from '../id.ts'
import { keySecret } from './private-key.ts'

/**
 * Root keys, from which the secrets of webhooks and the control tokens of modules are derived: 256 random bits each.
 * They are never rotated, because receivers and running modules store the derived values.
 */

type Purpose = 'webhook' | 'module'

const names = { webhook: keySecret('webhook-key'), module: keySecret('module-key') }

const cached = new Map<Purpose, string>()

/** Concurrent first starts create the same keys. */
export async function ensureRootKeys(): Promise<void> {
  await Promise.all(Object.values(names).map((name) => createSecretOnce(name, newSecret())))
}

async function rootKey(purpose: Purpose): Promise<string> {
  const key = cached.get(purpose) ?? (await readSecret(names[purpose]))
  if (key === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  cached.set(purpose, key)
  return key
}

export const webhookRootKey = (): Promise<string> => rootKey('webhook')

export const moduleRootKey = (): Promise<string> => rootKey('module')
