import { AsyncLocalStorage } from 'node:async_hooks'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { currentTraceId } from '../log.ts'
import { version } from './version.ts'

/**
 * Metrics in CloudWatch's embedded metric format: one JSON line per request, batch or scheduled run. No calls. Enabled
 * by `PLAT_METRICS`.
 */

type Unit = 'Count' | 'Seconds' | 'Milliseconds'

/** All metrics with their units. Within one line, counts are summed; of durations the maximum is written. */
export const metricUnits = {
  /** API responses and their duration. */
  Requests: 'Count',
  RequestDuration: 'Milliseconds',
  /** 5xx responses, written with every request, so that the average is the error rate. */
  ServerErrors: 'Count',
  /** 429 responses. */
  RateLimited: 'Count',
  MessagesProcessed: 'Count',
  MessagesFailed: 'Count',
  /** The duration of the slowest message. */
  BatchDuration: 'Milliseconds',
  ScheduledRuns: 'Count',
  ScheduledRunFailures: 'Count',
  ScheduledRunDuration: 'Milliseconds',
  /** How overdue the oldest item of a sweep was. */
  SweepDelay: 'Seconds',
  /** Items that a sweep failed to process. */
  SweepFailures: 'Count',
  /** The age of the oldest projected record. */
  OutboxLag: 'Seconds',
  /** Records that a projection could not process. */
  RecordsQuarantined: 'Count',
  SignInFailures: 'Count',
  /** Outbound calls without a response. */
  OutboundFailures: 'Count',
  /** Failed webhook delivery attempts. */
  DeliveryFailures: 'Count',
} as const satisfies Record<string, Unit>

export type MetricName = keyof typeof metricUnits

const namespace = 'Platform'
/** Only one dimension, because each combination of values is billed as a metric. Other fields can be searched. */
const dimensions = [['Function']]

type Values = Map<MetricName, number>

const storage = new AsyncLocalStorage<Values>()

/** Adds to the metrics of the current `withMetrics`; otherwise does nothing. */
export function recordMetric(name: MetricName, value = 1): void {
  const values = storage.getStore()
  if (values === undefined || !Number.isFinite(value)) return
  const previous = values.get(name)
  if (previous === undefined) values.set(name, value)
  else values.set(name, metricUnits[name] === 'Count' ? previous + value : Math.max(previous, value))
}

/** Runs the work and writes one line with its metrics, even on error. */
export async function withMetrics<Result>(work: () => Promise<Result>): Promise<Result> {
  if (config.PLAT_METRICS === 'off') return work()
  const values: Values = new Map()
  try {
    return await storage.run(values, work)
  } finally {
    if (values.size > 0) process.stdout.write(`${JSON.stringify(metricLine(values))}\n`)
  }
}

/** The line in the embedded metric format. The trace id links a metric to the request's log. */
function metricLine(values: Values): object {
  const traceId = currentTraceId()
  const Metrics = [...values.keys()].map((Name) => ({ Name, Unit: metricUnits[Name] }))
  return {
    _aws: { Timestamp: now(), CloudWatchMetrics: [{ Namespace: namespace, Dimensions: dimensions, Metrics }] },
    Function: config.AWS_LAMBDA_FUNCTION_NAME,
    Version: version,
    ...Object.fromEntries(values),
    ...(traceId !== '' && { traceId }),
  }
}
