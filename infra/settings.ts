import { parseConfig } from '../packages/core/src/lib/settings/schema.ts'
import { type TrustedKey, TrustedKeyFiles } from '../packages/core/src/lib/settings/key-files.ts'

/** Settings that `npm run deploy` passes from its environment to the functions. */
export const settingNames = [
  'PLAT_OUTBOUND_ALLOW',
  'PLAT_WEBHOOK_ALLOW',
  'PLAT_REGISTRY_ALLOW',
  'PLAT_MODULE_SOURCES',
  'PLAT_MODULE_KEYS',
  'PLAT_ALLOW_UNVERIFIED_MODULES',
  'PLAT_AUDIT_CHECKPOINT_TARGET',
  'PLAT_FRONT_SECRET_SHA256',
  'PLAT_FRONT_REQUIRED',
  'PLAT_RELEASE_SOURCE',
  'PLAT_RELEASE_KEYS',
  'PLAT_UPDATE_BAKE_SECONDS',
  'PLAT_HEARTBEAT_INTERVAL_SECONDS',
  'PLAT_CHANNEL_HEARTBEAT_SECONDS',
  'PLAT_OUTBOX_RETRY_SECONDS',
  'PLAT_OPERATION_LEASE_SECONDS',
  'PLAT_LOG_LEVEL',
  'PLAT_SESSION_MAX_DAYS',
  'PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE',
  'PLAT_LIMIT_SIGN_IN_USER_PER_HOUR',
  'PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE',
  'PLAT_LIMIT_SIGN_INS_PER_MINUTE',
  'PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE',
  'PLAT_LIMIT_SETUP_PER_MINUTE',
  'PLAT_LIMIT_REFRESH_PER_MINUTE',
  'PLAT_LIMIT_ENROLL_PER_MINUTE',
  'PLAT_LIMIT_BATCH_PER_MINUTE',
  'PLAT_LIMIT_API_PER_MINUTE',
  'PLAT_LIMIT_API_BURST',
  'PLAT_QUOTA_CLUSTERS',
  'PLAT_QUOTA_USERS',
  'PLAT_QUOTA_WEBHOOKS',
  'PLAT_QUOTA_ACTIVE_JOBS',
] as const

/** Settings that name key files; functions receive the keys. */
export const keyFileSettingNames = ['PLAT_MODULE_TRUSTED_KEYS', 'PLAT_RELEASE_TRUSTED_KEYS'] as const

/** Lambda limits the environment to 4 KiB; resource names and URLs take the rest. */
export const maxSettingBytes = 1900

type Environment = Record<string, string | undefined>

/**
 * Returns the settings under the names that functions read, with keys in place of key files. An empty value counts as
 * unset. Throws if a setting is invalid or the settings are too large.
 */
export function settingsOf(environment: Environment): Record<string, string> {
  const values = Object.fromEntries(settingNames.map((name) => [name, environment[name] || undefined]))
  parseConfig(values)
  if (!/^(?:s3:.*)?$/.test(values['PLAT_AUDIT_CHECKPOINT_TARGET'] ?? ''))
    throw new Error('Invalid settings in the environment:\n  PLAT_AUDIT_CHECKPOINT_TARGET: must be s3://bucket/prefix')
  if (values['PLAT_FRONT_REQUIRED'] === 'true' && !values['PLAT_FRONT_SECRET_SHA256'])
    throw new Error('Invalid settings in the environment:\n  PLAT_FRONT_REQUIRED: requires PLAT_FRONT_SECRET_SHA256')
  const keys = {
    PLAT_MODULE_KEYS: keysOf('MODULE', environment),
    PLAT_RELEASE_KEYS: keysOf('RELEASE', environment),
  }
  const settings = Object.entries({ ...values, ...keys }).filter((entry): entry is [string, string] =>
    Boolean(entry[1]),
  )
  const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries(settings)))
  if (bytes > maxSettingBytes) throw sizeError(settings, bytes)
  return Object.fromEntries(settings)
}

function sizeError(settings: [string, string][], bytes: number): Error {
  const [longestSetting] = settings.toSorted(([, one], [, other]) => other.length - one.length)
  return new Error(
    `The settings take ${bytes} bytes of the functions' environment, more than the available ${maxSettingBytes}; ` +
      `the longest is ${longestSetting?.[0]}. Ed25519 keys are the shortest.`,
  )
}

function keysOf(owner: 'MODULE' | 'RELEASE', environment: Environment): string | undefined {
  const name = `PLAT_${owner}_TRUSTED_KEYS`
  const files = TrustedKeyFiles.safeParse(environment[name] ?? '')
  if (!files.success) {
    throw new Error(
      `Invalid settings in the environment:\n  ${name}: ${files.error.issues.map(({ message }) => message).join(', ')}`,
    )
  }
  const literalKeys: TrustedKey[] = JSON.parse(environment[`PLAT_${owner}_KEYS`] || '[]')
  const keys = [...files.data, ...literalKeys]
  return keys.length === 0 ? undefined : JSON.stringify(keys)
}
