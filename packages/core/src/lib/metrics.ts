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

/** All metrics with their units. Within one line counts are summed; of times the longest is kept. */
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
  /** A batch takes as long as its slowest message. */
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
/** Only one dimension: every combination of values is a separately billed metric. Other fields can be searched. */
const dimensions = [['Function']]

type Values = Map<MetricName, number>

const measuring = new AsyncLocalStorage<Values>()

/** Adds to the metrics of the running work; does nothing outside of it. */
export function recordMetric(name: MetricName, value = 1): void {
  const values = measuring.getStore()
  if (values === undefined || !Number.isFinite(value)) return
  const earlier = values.get(name)
  if (earlier === undefined) values.set(name, value)
  else values.set(name, metricUnits[name] === 'Count' ? earlier + value : Math.max(earlier, value))
}

/** Runs the work and writes one line with its metrics, even on error. */
export async function withMetrics<Result>(work: () => Promise<Result>): Promise<Result> {
  if (config.PLAT_METRICS === 'off') return work()
  const values: Values = new Map()
  try {
    return await measuring.run(values, work)
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
