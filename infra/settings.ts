import { parseConfig } from '../packages/core/src/lib/settings/schema.ts'
import { type TrustedKey, TrustedKeyFiles } from '../packages/core/src/lib/settings/key-files.ts'

/** What an operator may set for the functions: what stands in the environment of `npm run deploy` goes to them as it is. */
export const settingNames = [
  'PLAT_OUTBOUND_ALLOW',
  'PLAT_REGISTRY_ALLOW',
  'PLAT_MODULE_SOURCES',
  'PLAT_MODULE_KEYS',
  'PLAT_ALLOW_UNVERIFIED_MODULES',
  'PLAT_RELEASE_SOURCE',
  'PLAT_RELEASE_KEYS',
  'PLAT_UPDATE_BAKE_SECONDS',
  'PLAT_HEARTBEAT_INTERVAL_SECONDS',
  'PLAT_ANNOUNCE_AGAIN_SECONDS',
  'PLAT_OPERATION_LEASE_SECONDS',
  'PLAT_LOG_LEVEL',
  'PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE',
  'PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE',
  'PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE',
  'PLAT_LIMIT_SETUP_PER_MINUTE',
  'PLAT_LIMIT_REFRESH_PER_MINUTE',
  'PLAT_LIMIT_ENROLL_PER_MINUTE',
  'PLAT_LIMIT_BATCH_PER_MINUTE',
  'PLAT_LIMIT_API_PER_MINUTE',
  'PLAT_LIMIT_API_BURST',
] as const

/** Settings that name files of keys, for people; functions get what is in them. */
export const keyFileNames = ['PLAT_MODULE_TRUSTED_KEYS', 'PLAT_RELEASE_TRUSTED_KEYS'] as const

/** Lambda takes 4 KiB of environment; the rest is for names and addresses, those of the longest stage included. */
export const settingBytesMax = 1900

type Environment = Record<string, string | undefined>

/**
 * The settings of a deployment, by the names that functions read. Files of keys are read here, as one machine reads them at
 * its start. An empty value counts as unset. Throws one error that names every bad setting, or says that they are too long.
 */
export function settingsOf(environment: Environment): Record<string, string> {
  const given = Object.fromEntries(settingNames.map((name) => [name, environment[name] || undefined]))
  parseConfig(given)
  const keys = {
    PLAT_MODULE_KEYS: keysOf('MODULE', environment),
    PLAT_RELEASE_KEYS: keysOf('RELEASE', environment),
  }
  const settings = Object.entries({ ...given, ...keys }).filter((entry): entry is [string, string] => Boolean(entry[1]))
  const bytes = Buffer.byteLength(JSON.stringify(Object.fromEntries(settings)))
  if (bytes > settingBytesMax) throw tooLong(settings, bytes)
  return Object.fromEntries(settings)
}

function tooLong(settings: [string, string][], bytes: number): Error {
  const [longest] = settings.toSorted(([, one], [, other]) => other.length - one.length)
  return new Error(
    `The settings take ${bytes} bytes of the functions' environment, of which ${settingBytesMax} are left for them; ` +
      `the longest is ${longest?.[0]}. An Ed25519 key takes the least.`,
  )
}

/** Keys of files and keys as they are, as JSON; nothing where none is given. */
function keysOf(whose: 'MODULE' | 'RELEASE', environment: Environment): string | undefined {
  const name = `PLAT_${whose}_TRUSTED_KEYS`
  const files = TrustedKeyFiles.safeParse(environment[name] ?? '')
  if (!files.success) {
    throw new Error(
      `Bad settings in the environment:\n  ${name}: ${files.error.issues.map(({ message }) => message).join(', ')}`,
    )
  }
  const others: TrustedKey[] = JSON.parse(environment[`PLAT_${whose}_KEYS`] || '[]')
  const keys = [...files.data, ...others]
  return keys.length === 0 ? undefined : JSON.stringify(keys)
}
