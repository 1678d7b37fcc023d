import { AsyncLocalStorage } from 'node:async_hooks'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { currentTraceId } from '../log.ts'
import { version } from './version.ts'

/** Each request, queue batch or scheduled run writes one JSON line in CloudWatch's embedded metric format. */

type Unit = 'Count' | 'Seconds' | 'Milliseconds'

/** Within one line, counts are summed; of durations, the maximum is written. */
export const metricUnits = {
  Requests: 'Count',
  RequestDuration: 'Milliseconds',
  /** 5xx responses. Recorded for every request, so that the average is the error rate. */
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
  /** Time by which the oldest due item of a sweep was overdue. */
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
/** A single dimension, because each combination of values is billed as a metric. All fields can be searched. */
const dimensions = [['Function']]

type Values = Map<MetricName, number>

const storage = new AsyncLocalStorage<Values>()

/** Does nothing outside of `withMetrics`. */
export function recordMetric(name: MetricName, value = 1): void {
  const values = storage.getStore()
  if (values === undefined || !Number.isFinite(value)) return
  const previous = values.get(name)
  if (previous === undefined) values.set(name, value)
  else values.set(name, metricUnits[name] === 'Count' ? previous + value : Math.max(previous, value))
}

/** Writes the line even on error. */
export async function withMetrics<Result>(work: () => Promise<Result>): Promise<Result> {
  if (config.PLAT_METRICS === 'off') return work()
  const values: Values = new Map()
  try {
    return await storage.run(values, work)
  } finally {
    if (values.size > 0) process.stdout.write(`${JSON.stringify(metricLine(values))}\n`)
  }
}

/** The trace id links a metric to the request's log. */
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
