import type { MetricName } from '../packages/core/src/lib/metrics.ts'
import { type Task, tasks } from '../packages/contract/src/task.ts'
import { tableIndexes } from '../packages/core/src/db/schema.ts'
import { functionNameOf } from './functions.ts'
import { api } from './gateway.ts'
import { table } from './storage.ts'

export interface Metric {
  namespace: string
  metricName: string
  dimensions: Record<string, $util.Input<string>>
}

/** The Lambda function name contains the stage, so metrics of stages stay separate. */
export const platformMetric = (metricName: MetricName, name: string): Metric => ({
  namespace: 'Platform',
  metricName,
  dimensions: { Function: functionNameOf(name) },
})

export const functionMetric = (metricName: 'Errors' | 'Duration' | 'Invocations', name: string): Metric => ({
  namespace: 'AWS/Lambda',
  metricName,
  dimensions: { FunctionName: functionNameOf(name) },
})

/** Covers all functions of the account in this region, including those of modules: they share a concurrency limit. */
export const allFunctionsMetric = (metricName: 'Errors' | 'Throttles' | 'ConcurrentExecutions'): Metric => ({
  namespace: 'AWS/Lambda',
  metricName,
  dimensions: {},
})

export const queueMetric = (
  metricName: 'ApproximateAgeOfOldestMessage' | 'ApproximateNumberOfMessagesVisible' | 'NumberOfMessagesReceived',
  { nodes }: sst.aws.Queue,
): Metric => ({ namespace: 'AWS/SQS', metricName, dimensions: { QueueName: nodes.queue.name } })

export const gatewayMetric = (metricName: 'Count' | '4xx' | '5xx' | 'Latency'): Metric => ({
  namespace: 'AWS/ApiGateway',
  metricName,
  dimensions: { ApiId: api.nodes.api.id },
})

export const tableMetric = (
  metricName: 'ReadThrottleEvents' | 'WriteThrottleEvents' | 'ConsumedReadCapacityUnits' | 'ConsumedWriteCapacityUnits',
): Metric => ({ namespace: 'AWS/DynamoDB', metricName, dimensions: { TableName: table.name } })

/** DynamoDB counts a write that an index throttles only in the metric of that index. */
const indexThrottleMetric = (index: string): Metric => ({
  namespace: 'AWS/DynamoDB',
  metricName: 'WriteThrottleEvents',
  dimensions: { TableName: table.name, GlobalSecondaryIndexName: index },
})

/**
 * Throttled calls of the table and throttled writes of its indexes. Throttled reads of an index are not included; if
 * they make calls fail, the alarms `api-server-errors`, `sweep-failures` or `scheduled-run-errors` report the failures.
 */
export const tableThrottles: readonly Metric[] = [
  tableMetric('ReadThrottleEvents'),
  tableMetric('WriteThrottleEvents'),
  ...Object.keys(tableIndexes).map(indexThrottleMetric),
]

const queueOf = ({ trigger }: Task): string | undefined =>
  typeof trigger === 'object' && 'queue' in trigger ? trigger.queue : undefined

/** Includes the consumers of dead-letter queues. */
export const consumers = Object.entries<Task>(tasks).flatMap(([name, task]) => (queueOf(task) ? [name] : []))

export const schedules = Object.entries<Task>(tasks).flatMap(([name, { trigger, timeoutSeconds }]) =>
  typeof trigger === 'object' && 'everySeconds' in trigger ? [{ name, timeoutSeconds }] : [],
)

export const hasDeadLetterConsumer = (queue: string): boolean =>
  Object.values<Task>(tasks).some((task) => queueOf(task) === `${queue}-dead-letter`)
