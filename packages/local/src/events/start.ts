import { tasks } from '@platform/contract/task'
import type { RunningEmulators } from '../emulators/start.ts'
import { startConsumers } from './consumers.ts'
import { writeCheckSeconds } from '../function-environment.ts'
import type { FunctionPool } from '../functions/pool.ts'
import type { Log } from '../log.ts'
import type { Queues } from '../provision.ts'
import { startSchedule } from './schedule.ts'
import type { Settings } from '../settings.ts'

export interface Functions {
  invoke: FunctionPool['invoke']
  names: readonly string[]
}

interface Work {
  emulators: RunningEmulators
  queues: Queues
  /** Whether the start has scanned the catalog. If true, the schedule does not begin with a scan. */
  isCatalogScanned: boolean
}

/**
 * Starts the queue consumers and the schedules. Returns a function that starts no more work and resolves when the
 * running work has ended.
 */
export function startWork(
  settings: Settings,
  { emulators, queues, isCatalogScanned }: Work,
  { invoke, names }: Functions,
  log: Log,
): () => Promise<void> {
  const consumers = startConsumers({ emulators, queues, functionNames: names, invoke, log })
  const schedules = [
    { name: 'write-check', intervalMs: writeCheckSeconds * 1000 },
    { name: 'checkpoints', intervalMs: tasks['schedule/checkpoints'].trigger.everySeconds * 1000, runsAtStart: true },
    { name: 'sweep', intervalMs: settings.sweepIntervalSeconds * 1000 },
    { name: 'heartbeat', intervalMs: settings.moduleSupervisionSeconds * 1000, runsAtStart: true },
    {
      name: 'catalog',
      intervalMs: tasks['schedule/catalog'].trigger.everySeconds * 1000,
      runsAtStart: !isCatalogScanned,
    },
    { name: 'updates', intervalMs: tasks['schedule/updates'].trigger.everySeconds * 1000, runsAtStart: true },
  ]
    .filter(({ name }) => names.includes(`schedule/${name}`))
    .map((schedule) =>
      startSchedule({ ...schedule, invoke: (event) => invoke(`schedule/${schedule.name}`, event), log }),
    )
  return async () => {
    await Promise.all([consumers.stop(), ...schedules.map((schedule) => schedule.stop())])
  }
}
