import { createSecretOnce, readSecret } from '../aws/secrets.ts'
import { platformError } from '../error.ts'
import { newSecret } from '../id.ts'
import { keySecret } from './private-key.ts'

/**
 * The secrets of webhooks and the control tokens of modules are derived from root keys of 256 random bits. Root keys
 * are never rotated, because receivers and running modules store the derived values.
 */

type Purpose = 'webhook' | 'module'

const secretNames = { webhook: keySecret('webhook-key'), module: keySecret('module-key') }

const cachedKeys = new Map<Purpose, string>()

/** Concurrent first starts create the same keys. */
export async function ensureRootKeys(): Promise<void> {
  await Promise.all(Object.values(secretNames).map((name) => createSecretOnce(name, newSecret())))
}

async function readRootKey(purpose: Purpose): Promise<string> {
  const key = cachedKeys.get(purpose) ?? (await readSecret(secretNames[purpose]))
  if (key === undefined) throw platformError('starting', { retryAfterSeconds: 2 })
  cachedKeys.set(purpose, key)
  return key
}

export const webhookRootKey = (): Promise<string> => readRootKey('webhook')

export const moduleRootKey = (): Promise<string> => readRootKey('module')
