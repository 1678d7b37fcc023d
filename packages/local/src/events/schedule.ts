import { localAccountId, localRegion } from '../emulators/http/environment.ts'
import type { Log } from '../log.ts'

/** What EventBridge hands to a function on a schedule. */
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

/** Settings of a schedule. */
export interface ScheduleOptions {
  name: string
  intervalMs: number
  /** Whether it runs once at the start as well. */
  startsNow?: boolean
  invoke: (event: ScheduledEvent) => Promise<unknown>
  log: Log
}

/** A running schedule. */
export interface Schedule {
  /** Starts no more runs, and resolves once the one under way has ended. */
  stop: () => Promise<void>
}

/**
 * Invokes a function at every multiple of the interval after now. Runs never overlap: one that takes longer makes the
 * next wait for the following multiple.
 */
export function startSchedule({ name, intervalMs, startsNow = false, invoke, log }: ScheduleOptions): Schedule {
  const startedMs = Date.now()
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  let stopped = false

  const run = async () => {
    try {
      await invoke(scheduledEvent(name, new Date()))
    } catch (error) {
      log('a scheduled run failed', { name, error })
    }
    planNext()
  }
  const begin = () => {
    running = run()
  }
  const planNext = () => {
    const untilNextMs = intervalMs - ((Date.now() - startedMs) % intervalMs)
    if (!stopped) timer = setTimeout(begin, untilNextMs)
  }
  if (startsNow) begin()
  else planNext()
  return {
    stop: () => {
      stopped = true
      clearTimeout(timer)
      return running
    },
  }
}

/** What a schedule hands over at a time. */
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
