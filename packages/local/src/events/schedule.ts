import { localAccountId, localRegion } from '../emulators/http/environment.ts'
import type { Log } from '../log.ts'

export interface ScheduledEvent {
  version: '0'
  id: string
  'detail-type': 'Scheduled Event'
  source: 'aws.events'
  account: string
  time: string
  region: string
  resources: string[]
  detail: Record<string, never>
}

export interface ScheduleOptions {
  name: string
  intervalMs: number
  runsAtStart?: boolean
  invoke: (event: ScheduledEvent) => Promise<unknown>
  log: Log
}

export interface Schedule {
  /** Starts no more runs; resolves when the current one has ended. */
  stop: () => Promise<void>
}

/**
 * Invokes a function at every multiple of the interval after the start. Runs never overlap: a run that takes longer
 * than the interval delays the next one to the following multiple.
 */
export function startSchedule({ name, intervalMs, runsAtStart = false, invoke, log }: ScheduleOptions): Schedule {
  const startedMs = performance.now()
  let timer: NodeJS.Timeout | undefined
  let currentRun = Promise.resolve()
  let isStopped = false

  const run = async () => {
    try {
      await invoke(scheduledEvent(name, new Date()))
    } catch (error) {
      log('a scheduled run failed', { name, error })
    }
    planNext()
  }
  const begin = () => {
    currentRun = run()
  }
  const planNext = () => {
    const untilNextMs = intervalMs - ((performance.now() - startedMs) % intervalMs)
    if (!isStopped) timer = setTimeout(begin, untilNextMs)
  }
  if (runsAtStart) begin()
  else planNext()
  return {
    stop: () => {
      isStopped = true
      clearTimeout(timer)
      return currentRun
    },
  }
}

export const scheduledEvent = (name: string, time: Date): ScheduledEvent => ({
  version: '0',
  id: crypto.randomUUID(),
  'detail-type': 'Scheduled Event',
  source: 'aws.events',
  account: localAccountId,
  time: `${time.toISOString().slice(0, 19)}Z`,
  region: localRegion,
  resources: [`arn:aws:events:${localRegion}:${localAccountId}:rule/${name}`],
  detail: {},
})
