import { awsEnvironment, type StandIns } from './aws-environment.ts'
import type { Queues } from './provision.ts'
import type { Settings } from './settings.ts'

/** What stands ready by the time that functions start. */
export interface Surroundings {
  apiUrl: string
  wakeUrl: string
  standIns: StandIns
  queues: Queues
}

/** The whole environment of the functions: the platform's settings and addresses, nothing else of this machine. */
export function functionEnvironment(settings: Settings, surroundings: Surroundings): Record<string, string> {
  // Only the queue itself sends to a dead-letter queue.
  const queues = [...surroundings.queues].filter(([name]) => !name.endsWith('-dead-letter'))
  const queueUrls = queues.map(([name, { url }]) => [`PLAT_QUEUE_${name.toUpperCase()}`, url])
  return {
    PLAT_API_URL: surroundings.apiUrl,
    ...settings.functionEnvironment,
    PLAT_WAKE_URL: surroundings.wakeUrl,
    PLAT_HOW_TO_RETRIEVE: 'npm run -s admin-token',
    PLAT_ASSETS_DIR: settings.assetsDir,
    ...Object.fromEntries(queueUrls),
    ...awsEnvironment(surroundings.standIns),
  }
}
