import { AsyncLocalStorage } from 'node:async_hooks'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { currentTraceId } from '../log.ts'
import { version } from './version.ts'

/** Each request, queue batch or scheduled run writes one JSON line in CloudWatch's embedded metric format. */

type Unit = 'Count' | 'Seconds' | 'Milliseconds'

/** Within one line, counts are summed; for durations, the maximum is written. */
export const metricUnits = {
  Requests: 'Count',
  RequestDuration: 'Milliseconds',
  /** Counts 5xx responses. Recorded for every request, so that the average is the error rate. */
  ServerErrors: 'Count',
  RateLimited: 'Count',
  MessagesProcessed: 'Count',
  MessagesFailed: 'Count',
  /** The time in which a queue batch was processed. */
  BatchDuration: 'Milliseconds',
  ScheduledRuns: 'Count',
  ScheduledRunFailures: 'Count',
  ScheduledRunDuration: 'Milliseconds',
  /** The time for which the oldest due item of a sweep was overdue. */
  SweepDelay: 'Seconds',
  SweepFailures: 'Count',
  /** The age of the oldest record at its projection. */
  OutboxLag: 'Seconds',
  RecordsQuarantined: 'Count',
  SignInFailures: 'Count',
  /** Outbound calls without a response. */
  OutboundFailures: 'Count',
  DeliveryFailures: 'Count',
} as const satisfies Record<string, Unit>

export type MetricName = keyof typeof metricUnits

const namespace = 'Platform'
/**
 * Only one dimension, because each combination of values is billed as a metric. Other fields can be searched in the
 * log.
 */
const dimensions = [['Function']]

type Values = Map<MetricName, number>

const storage = new AsyncLocalStorage<Values>()

/** Does nothing outside of `withMetrics`. */
export function recordMetric(name: MetricName, value = 1): void {
  const values = storage.getStore()
  if (values === undefined || !Number.isFinite(value)) return
  const previousValue = values.get(name)
  if (previousValue === undefined) values.set(name, value)
  else values.set(name, metricUnits[name] === 'Count' ? previousValue + value : Math.max(previousValue, value))
}

export async function withMetrics<Result>(work: () => Promise<Result>): Promise<Result> {
  if (config.PLAT_METRICS === 'off') return work()
  const values: Values = new Map()
  try {
    return await storage.run(values, work)
  } finally {
    if (values.size > 0) process.stdout.write(`${JSON.stringify(metricLine(values))}\n`)
  }
}

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
