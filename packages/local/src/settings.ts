import { BlockList } from 'node:net'
import { resolve } from 'node:path'
import { type TrustedKey, TrustedKeyFiles } from '@platform/core/lib/settings/key-files'
import { maxTrustedKeys, TrustedKeys } from '@platform/core/lib/settings/trusted-keys'
import { Config, integer, optionalInteger } from '@platform/core/lib/settings/schema'
import { ReleaseSource } from '@platform/core/lib/settings/release-source'
import * as z from 'zod'
import { TrustedProxies } from './gateway/sender.ts'
import { projectDir } from './project-dir.ts'

export interface Settings {
  host: string
  /** 0 selects a free port. */
  port: number
  /** Proxies whose `X-Forwarded-*` headers describe the client. */
  trustedProxies: BlockList
  /** Absolute path of the folder with all state. */
  dataDir: string
  /** Port of the embedded registry; 0 selects a free port. */
  registryPort: number
  functionThreads: number
  sweepIntervalSeconds: number
  moduleSupervisionSeconds: number
  /** `auto` selects the strongest isolation that works on this machine. */
  moduleIsolation: 'auto' | 'process' | 'container'
  /** Public keys that verify modules, in addition to the platform's own. */
  trustedKeys: readonly TrustedKey[]
  /** `registry/repository` of releases; the embedded registry by default. */
  releaseSource: string | undefined
  /** Public keys that verify releases, in addition to the platform's own. */
  releaseKeys: readonly TrustedKey[]
  /** Token that reads the metrics; without one, only this machine may read them. */
  metricsToken: string | undefined
  /** Absolute path. */
  functionsDir: string
  /** Absolute path of the folder of built files. */
  assetsDir: string
  /** Absolute path of the file with the passphrase of backups. */
  backupPassphraseFile: string | undefined
  /** `PLAT_…` variables of the functions. */
  functionEnvironment: Record<string, string>
  /** Set by `npm start -- --demo`, never by the environment. */
  isDemo: boolean
  /** Destination of log lines; by default a file if standard output is a terminal, else `stdout`. */
  log: 'stdout' | 'file' | undefined
  /** Unknown `PLAT_…` names in the environment, such as mistyped ones. */
  ignored: readonly string[]
}

/** The message lists the invalid settings, one on each line. */
export class InvalidSettings extends Error {
  override readonly name = 'InvalidSettings'
}

const rateLimit = (fallback: number) => integer(fallback, 1, 1_000_000)

/** The default rate limits are high, because clients of a one-machine platform are trusted. */
const Environment = z.object({
  PLAT_HOST: z.string().default('127.0.0.1'),
  PLAT_PORT: integer(8080, 0, 65_535),
  PLAT_TRUSTED_PROXIES: TrustedProxies.default(() => new BlockList()),
  PLAT_DATA_DIR: z.string().default('.platform'),
  PLAT_BACKUP_PASSPHRASE_FILE: z.string().optional(),
  PLAT_LOG: z.enum(['stdout', 'file']).optional(),
  /** S3 is not supported: on one machine, functions have only the credentials of the emulators. */
  PLAT_AUDIT_CHECKPOINT_TARGET: z
    .string()
    .refine((target) => !target.includes('://'), 'must be a folder on one machine')
    .optional(),
  PLAT_FUNCTION_THREADS: integer(2, 1, 64),
  PLAT_SWEEP_INTERVAL_SECONDS: integer(60, 1, 3600),
  PLAT_HEARTBEAT_INTERVAL_SECONDS: integer(30, 1, 3600),
  PLAT_TABLE: z.string().default('platform'),
  PLAT_SECRET_ADMIN_TOKEN: z.string().default('platform/initial-admin-token'),
  PLAT_API_URL: z.url({ protocol: /^https?$/ }).optional(),
  PLAT_REGISTRY_PORT: optionalInteger(0, 65_535),
  PLAT_MODULE_TRUSTED_KEYS: TrustedKeyFiles.default([]),
  PLAT_MODULE_KEYS: TrustedKeys.default([]),
  PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS: integer(60, 1, 3600),
  PLAT_MODULE_ISOLATION: z.enum(['auto', 'process', 'container']).default('auto'),
  PLAT_RELEASE_SOURCE: ReleaseSource.optional(),
  PLAT_RELEASE_TRUSTED_KEYS: TrustedKeyFiles.default([]),
  PLAT_RELEASE_KEYS: TrustedKeys.default([]),
  PLAT_METRICS_TOKEN: z.string().min(24, 'must have 24 characters or more').optional(),
  PLAT_UPDATE_BAKE_SECONDS: integer(5, 1, 60),
  PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE: rateLimit(30),
  PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE: rateLimit(600),
  PLAT_LIMIT_SIGN_INS_PER_MINUTE: rateLimit(600),
  PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE: rateLimit(600),
  PLAT_LIMIT_SETUP_PER_MINUTE: rateLimit(600),
  PLAT_LIMIT_REFRESH_PER_MINUTE: rateLimit(600),
  PLAT_LIMIT_ENROLL_PER_MINUTE: rateLimit(600),
  PLAT_LIMIT_BATCH_PER_MINUTE: rateLimit(600),
  PLAT_LIMIT_API_PER_MINUTE: rateLimit(60_000),
  PLAT_LIMIT_API_BURST: rateLimit(5000),
})

/** All other settings of the functions, passed on unchanged. */
const FunctionSettings = z.object(
  Object.fromEntries(Object.entries(Config.shape).filter(([name]) => !(name in Environment.shape))),
)

/** Settings of `plat` and relays, which may be in the same environment. */
const settingsOfOtherPrograms = new Set([
  'PLAT_SERVER',
  'PLAT_TOKEN',
  'PLAT_CONTEXT',
  'PLAT_PASSWORD',
  'PLAT_NEW_PASSWORD',
  'PLAT_IDP_SECRET',
  'PLAT_REGISTRY_USERNAME',
  'PLAT_REGISTRY_PASSWORD',
  'PLAT_RELAY_SERVER',
  'PLAT_ENROLLMENT_TOKEN',
  'PLAT_ENROLLMENT_KEY',
  'PLAT_RELAY_TRIAL_SECONDS',
  'PLAT_JOB_ID',
  'PLAT_NODE_NAME',
])

const isKnown = (name: string): boolean =>
  name in Environment.shape || name in FunctionSettings.shape || settingsOfOtherPrograms.has(name)

const runnerSettings = new Set(['PLAT_METRICS_TOKEN', 'PLAT_BACKUP_PASSPHRASE_FILE', 'PLAT_LOG'])

const invalidSettingsError = (lines: readonly string[]): InvalidSettings =>
  new InvalidSettings(`These settings in the environment are not valid:${lines.map((line) => `\n  ${line}`).join('')}`)

/** Returns 0 (a free port) if the API's port is 0 or the highest port. */
const nextPort = (port: number): number => (port === 0 || port === 65_535 ? 0 : port + 1)

/** An empty value counts as unset. Throws `InvalidSettings`. */
export function parseSettings(environment: Record<string, string | undefined>): Settings {
  const variables = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[0].startsWith('PLAT_') && Boolean(entry[1]),
  )
  const parsed = Environment.safeParse(Object.fromEntries(variables))
  const functionSettings = FunctionSettings.safeParse(Object.fromEntries(variables))
  if (!parsed.success || !functionSettings.success) {
    const issues = [parsed, functionSettings].flatMap(({ error }) => error?.issues ?? [])
    throw invalidSettingsError(issues.map(({ path, message }) => `${path.join('.')}: ${message}`))
  }
  const knownVariables = Object.entries(parsed.data).flatMap(([name, value]) =>
    typeof value === 'string' || typeof value === 'number' ? [[name, `${value}`]] : [],
  )
  const { data } = parsed
  const trustedKeys = [...data.PLAT_MODULE_TRUSTED_KEYS, ...data.PLAT_MODULE_KEYS]
  const releaseKeys = [...data.PLAT_RELEASE_TRUSTED_KEYS, ...data.PLAT_RELEASE_KEYS]
  // The platform adds its own key to each list.
  const maxKeys = maxTrustedKeys - 1
  const tooManyKeysLines = Object.entries({
    PLAT_MODULE_TRUSTED_KEYS: trustedKeys,
    PLAT_RELEASE_TRUSTED_KEYS: releaseKeys,
  })
    .filter(([, keys]) => keys.length > maxKeys)
    .map(([name, keys]) => `${name}: ${keys.length} keys are more than ${maxKeys}`)
  if (tooManyKeysLines.length > 0) throw invalidSettingsError(tooManyKeysLines)
  return {
    host: data.PLAT_HOST,
    port: data.PLAT_PORT,
    trustedProxies: data.PLAT_TRUSTED_PROXIES,
    dataDir: resolve(data.PLAT_DATA_DIR),
    registryPort: data.PLAT_REGISTRY_PORT ?? nextPort(data.PLAT_PORT),
    functionThreads: data.PLAT_FUNCTION_THREADS,
    sweepIntervalSeconds: data.PLAT_SWEEP_INTERVAL_SECONDS,
    moduleSupervisionSeconds: data.PLAT_MODULE_SUPERVISION_INTERVAL_SECONDS,
    moduleIsolation: data.PLAT_MODULE_ISOLATION,
    trustedKeys,
    releaseSource: data.PLAT_RELEASE_SOURCE,
    releaseKeys,
    metricsToken: data.PLAT_METRICS_TOKEN,
    backupPassphraseFile: data.PLAT_BACKUP_PASSPHRASE_FILE && resolve(data.PLAT_BACKUP_PASSPHRASE_FILE),
    isDemo: false,
    log: data.PLAT_LOG,
    functionsDir: resolve(projectDir, 'functions'),
    assetsDir: resolve(projectDir, 'dist'),
    functionEnvironment: Object.fromEntries(
      [...variables, ...knownVariables].filter(([name]) => !runnerSettings.has(name ?? '')),
    ),
    ignored: variables.flatMap(([name]) => (isKnown(name) ? [] : [name])),
  }
}
