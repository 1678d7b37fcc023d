import { ownKeyName } from '@platform/core/modules/record'
import { awsEnvironment, type EmulatorAddresses } from './emulators/http/environment.ts'
import { channelPath } from './gateway/channel.ts'
import type { Queues } from './provision.ts'
import { helloRepository } from './registry/seed.ts'
import type { Settings } from './settings.ts'

/** The write check runs more often than on AWS, where schedules run at most once a minute. */
export const writeCheckSeconds = 10

const startedAtMs = Date.now()

export interface ModuleOrigin {
  /** `host:port` of the embedded registry. */
  registryHost: string
  /** Public key (PEM) that verifies the platform's own modules. */
  ownKey: string
}

interface Endpoint {
  url: string
  token: string
}

export interface EnvironmentContext extends ModuleOrigin {
  apiUrl: string
  /** Address that functions call to wake relays. */
  channelUrl: string
  /** Folder of the built files that functions serve. */
  assetsDir: string
  emulators: EmulatorAddresses
  queues: Queues
  /** Result of `releaseEnvironment`. */
  releases: Record<string, string>
  /** Address of the module host. `LocalRuntime` describes `isFallback`. */
  host: Endpoint & { isFallback: boolean }
}

/** Returns the environment of the functions, which get no other variables of this machine. */
export function functionEnvironment(
  settings: Settings,
  context: EnvironmentContext,
  updateSupervisor: Endpoint,
): Record<string, string> {
  // Functions never send to a dead-letter queue.
  const queues = [...context.queues].filter(([name]) => !name.endsWith('-dead-letter'))
  const queueUrls = queues.map(([name, { url }]) => [`PLAT_QUEUE_${name.toUpperCase()}`, url])
  return {
    PLAT_API_URL: context.apiUrl,
    ...settings.functionEnvironment,
    PLAT_DEMO: `${settings.isDemo}`,
    PLAT_CHANNEL_URL: channelPath,
    PLAT_CHANNEL_ENDPOINT: context.channelUrl,
    PLAT_ADMIN_TOKEN_COMMAND: 'npm run -s admin-token',
    PLAT_WRITE_CHECK_INTERVAL_SECONDS: `${writeCheckSeconds}`,
    PLAT_STARTED_AT_MS: `${startedAtMs}`,
    PLAT_ASSETS_DIR: context.assetsDir,
    ...Object.fromEntries(queueUrls),
    ...moduleEnvironment(settings, context),
    PLAT_MODULE_HOST_URL: context.host.url,
    PLAT_MODULE_HOST_TOKEN: context.host.token,
    PLAT_MODULE_PROCESSES: context.host.isFallback ? 'seeded' : 'any',
    ...context.releases,
    PLAT_UPDATE_SUPERVISOR_URL: updateSupervisor.url,
    PLAT_UPDATE_SUPERVISOR_TOKEN: updateSupervisor.token,
    ...awsEnvironment(context.emulators),
  }
}

const joinList = (...entries: (string | undefined)[]): string => entries.filter(Boolean).join(',')

export function moduleEnvironment(
  settings: Pick<Settings, 'functionEnvironment' | 'trustedKeys'>,
  origin: ModuleOrigin,
): Record<string, string> {
  const { registryHost, ownKey } = origin
  const configuredSettings = settings.functionEnvironment
  const ownKeys = [{ name: ownKeyName, pem: ownKey, repositories: [helloRepository] }]
  return {
    PLAT_MODULE_SOURCES: joinList(`${registryHost}/*`, configuredSettings['PLAT_MODULE_SOURCES']),
    PLAT_MODULE_KEYS: JSON.stringify([...ownKeys, ...settings.trustedKeys]),
    PLAT_REGISTRY_ALLOW: joinList(registryHost, configuredSettings['PLAT_REGISTRY_ALLOW']),
  }
}
