import { tasks } from '@platform/contract/task'
import type { StandIns } from '../emulators/http/environment.ts'
import { startConsumers } from './consumers.ts'
import type { FunctionPool } from '../functions/pool.ts'
import type { Log } from '../log.ts'
import type { Queues } from '../provision.ts'
import { startSchedule } from './schedule.ts'
import type { Settings } from '../settings.ts'

/** The functions of a platform: all that there are, and how one is run. */
export interface Functions {
  invoke: FunctionPool['invoke']
  names: readonly string[]
}

/** What is there to be worked on. */
interface Work {
  standIns: StandIns
  queues: Queues
  /** Whether the catalog was made a moment ago. */
  isCatalogNew: boolean
}

/**
 * Starts what runs without a request: the consumers of the queues and the schedules. Modules that are installed are loaded at
 * once. What it answers stops it: nothing begins any more, and what is under way ends.
 */
export function startWork(
  settings: Settings,
  { standIns, queues, isCatalogNew }: Work,
  { invoke, names }: Functions,
  log: Log,
): () => Promise<void> {
  const consumers = startConsumers({ standIns, queues, functionNames: names, invoke, log })
  const schedules = [
    { name: 'sweep', intervalMs: settings.sweepIntervalSeconds * 1000 },
    { name: 'heartbeat', intervalMs: settings.moduleTickSeconds * 1000, startsNow: true },
    { name: 'catalog', intervalMs: tasks['schedule/catalog'].trigger.everySeconds * 1000, startsNow: !isCatalogNew },
    { name: 'updates', intervalMs: tasks['schedule/updates'].trigger.everySeconds * 1000, startsNow: true },
  ]
    .filter(({ name }) => names.includes(`schedule/${name}`))
    .map((schedule) =>
      startSchedule({ ...schedule, invoke: (event) => invoke(`schedule/${schedule.name}`, event), log }),
    )
  return async () => {
    await Promise.all([consumers.stop(), ...schedules.map((schedule) => schedule.stop())])
  }
}
