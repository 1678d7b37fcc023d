import { AsyncLocalStorage } from 'node:async_hooks'
import { now } from '../clock.ts'
import { config } from '../config.ts'
import { currentTraceId } from '../log.ts'
import { version } from './version.ts'

/**
 * What an operator watches in the cloud: CloudWatch's embedded metric format, one line of JSON for each request, batch of
 * messages or scheduled run, from which CloudWatch makes metrics by itself. It costs no call. Switched by `PLAT_METRICS`.
 */

type Unit = 'Count' | 'Seconds' | 'Milliseconds'

/** Every metric there is, with its unit. Within one line counts add up, and of times the longest stays. */
export const metricUnits = {
  /** Answers of the API, and how long they took. */
  Requests: 'Count',
  RequestDuration: 'Milliseconds',
  /** Answers 5xx; written with every request, so that their average is the share of requests that failed. */
  Faults: 'Count',
  /** Answers 429. */
  Refusals: 'Count',
  MessagesDone: 'Count',
  MessagesFailed: 'Count',
  /** A batch lasts as long as its slowest message. */
  BatchDuration: 'Milliseconds',
  Runs: 'Count',
  RunFailures: 'Count',
  RunDuration: 'Milliseconds',
  /** How overdue the oldest thing was that a sweep found. */
  SweepLateness: 'Seconds',
  /** Things that a sweep could not judge. */
  SweepFailures: 'Count',
  /** How old the oldest record was that was entered into the books. */
  BooksLag: 'Seconds',
  /** Records that some book could not take. */
  RecordsSetAside: 'Count',
  SignInFailures: 'Count',
  /** Calls to addresses outside that got no answer. */
  OutboundFailures: 'Count',
  /** Attempts to deliver to a webhook that failed, with an answer or without. */
  DeliveryFailures: 'Count',
} as const satisfies Record<string, Unit>

/** The name of a metric. */
export type MetricName = keyof typeof metricUnits

const namespace = 'Platform'
/** One: every combination of values is a metric of its own, paid for by the month. What else a line says can be searched for. */
const dimensions = [['Function']]

type Values = Map<MetricName, number>

const measuring = new AsyncLocalStorage<Values>()

/** Adds to what the running piece of work tells; outside of one it does nothing. */
export function recordMetric(name: MetricName, value = 1): void {
  const values = measuring.getStore()
  if (values === undefined || !Number.isFinite(value)) return
  const earlier = values.get(name)
  if (earlier === undefined) values.set(name, value)
  else values.set(name, metricUnits[name] === 'Count' ? earlier + value : Math.max(earlier, value))
}

/** Does a piece of work, and then writes one line of what was measured in it, even where it fails. */
export async function withMetrics<Result>(work: () => Promise<Result>): Promise<Result> {
  if (config.PLAT_METRICS === 'off') return work()
  const values: Values = new Map()
  try {
    return await measuring.run(values, work)
  } finally {
    if (values.size > 0) process.stdout.write(`${JSON.stringify(metricLine(values))}\n`)
  }
}

/** The line in the embedded metric format. The trace leads from a number to the log of its request. */
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
