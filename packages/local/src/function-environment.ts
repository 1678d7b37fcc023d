import { awsEnvironment, type StandIns } from './emulators/http/environment.ts'
import type { Queues } from './provision.ts'
import { helloRepository } from './registry/seed.ts'
import type { Settings } from './settings.ts'

/** Where the modules come from that the platform brings along. */
export interface ModuleOrigin {
  /** `host:port` of the embedded registry. */
  registryHost: string
  /** Public half (PEM) of the key that they are signed with. */
  ownKey: string
}

/** Where something listens that does what functions ask for. */
interface Host {
  url: string
  token: string
}

/** What stands ready by the time that functions start. */
export interface EnvironmentContext extends ModuleOrigin {
  apiUrl: string
  wakeUrl: string
  /** What functions hand out. */
  assetsDir: string
  standIns: StandIns
  queues: Queues
  /** Where releases come from, as `releaseEnvironment` tells. */
  releases: Record<string, string>
  /** What runs modules. */
  host: Host
}

/**
 * The whole environment of the functions: the platform's settings and addresses, nothing else of this machine. `updateHost` is
 * what replaces the functions.
 */
export function functionEnvironment(
  settings: Settings,
  surroundings: EnvironmentContext,
  updateHost: Host,
): Record<string, string> {
  // Only the queue itself sends to a dead-letter queue.
  const queues = [...surroundings.queues].filter(([name]) => !name.endsWith('-dead-letter'))
  const queueUrls = queues.map(([name, { url }]) => [`PLAT_QUEUE_${name.toUpperCase()}`, url])
  return {
    PLAT_API_URL: surroundings.apiUrl,
    ...settings.functionEnvironment,
    PLAT_WAKE_URL: surroundings.wakeUrl,
    PLAT_HOW_TO_RETRIEVE: 'npm run -s admin-token',
    PLAT_ASSETS_DIR: surroundings.assetsDir,
    ...Object.fromEntries(queueUrls),
    ...moduleEnvironment(settings, surroundings),
    PLAT_MODULE_HOST_URL: surroundings.host.url,
    PLAT_MODULE_HOST_TOKEN: surroundings.host.token,
    ...surroundings.releases,
    PLAT_UPDATE_HOST_URL: updateHost.url,
    PLAT_UPDATE_HOST_TOKEN: updateHost.token,
    ...awsEnvironment(surroundings.standIns),
  }
}

const joined = (...entries: (string | undefined)[]): string => entries.filter(Boolean).join(',')

/** Where modules come from, and whose signatures count. */
export function moduleEnvironment(
  settings: Pick<Settings, 'functionEnvironment' | 'trustedKeys'>,
  origin: ModuleOrigin,
): Record<string, string> {
  const { registryHost, ownKey } = origin
  const given = settings.functionEnvironment
  const ownKeys = [{ name: 'this platform', pem: ownKey, repositories: [helloRepository] }]
  return {
    PLAT_MODULE_SOURCES: joined(`${registryHost}/*`, given['PLAT_MODULE_SOURCES']),
    PLAT_MODULE_KEYS: JSON.stringify([...ownKeys, ...settings.trustedKeys]),
    PLAT_REGISTRY_ALLOW: joined(registryHost, given['PLAT_REGISTRY_ALLOW']),
  }
}
