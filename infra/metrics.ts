import type { MetricName } from '../packages/core/src/lib/metrics.ts'
import { type Task, tasks } from '../packages/contract/src/task.ts'
import { tableIndexes } from '../packages/core/src/db/schema.ts'
import { functionNameOf } from './functions.ts'
import { api } from './gateway.ts'
import { table } from './storage.ts'

/** What CloudWatch knows of a deployment: metrics that AWS writes, and those that the functions write. */
export interface Metric {
  namespace: string
  metricName: string
  dimensions: Record<string, $util.Input<string>>
}

/** A metric that functions write themselves. Lambda's name of a function tells stages apart, too. */
export const platformMetric = (metricName: MetricName, name: string): Metric => ({
  namespace: 'Platform',
  metricName,
  dimensions: { Function: functionNameOf(name) },
})

export const functionMetric = (metricName: 'Errors' | 'Duration', name: string): Metric => ({
  namespace: 'AWS/Lambda',
  metricName,
  dimensions: { FunctionName: functionNameOf(name) },
})

/** Of all functions of the account in this region: they share what they run on, modules' functions among them. */
export const allFunctionsMetric = (metricName: 'Throttles' | 'ConcurrentExecutions'): Metric => ({
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

/** Writes that an index refuses, and the table because of it: DynamoDB counts them for the index alone. */
const ofIndex = (index: string): Metric => ({
  namespace: 'AWS/DynamoDB',
  metricName: 'WriteThrottleEvents',
  dimensions: { TableName: table.name, GlobalSecondaryIndexName: index },
})

/**
 * Calls that the table refuses, and writes for its indexes. Reads of an index that fail are seen by who asked: `requests-fail`,
 * `sweep-failures`, `schedules-fail`.
 */
export const tableThrottles: readonly Metric[] = [
  tableMetric('ReadThrottleEvents'),
  tableMetric('WriteThrottleEvents'),
  ...Object.keys(tableIndexes).map(ofIndex),
]

const queueOf = ({ trigger }: Task): string | undefined =>
  typeof trigger === 'object' && 'queue' in trigger ? trigger.queue : undefined

/** Functions that take messages, those of dead letters included. */
export const consumers = Object.entries<Task>(tasks).flatMap(([name, task]) => (queueOf(task) ? [name] : []))

/** Functions that a clock begins. */
export const schedules = Object.entries<Task>(tasks).flatMap(([name, { trigger, timeoutSeconds }]) =>
  typeof trigger === 'object' && 'everySeconds' in trigger ? [{ name, timeoutSeconds }] : [],
)

/** Whether a function takes the dead letters of a queue as they come. */
export const hasConsumer = (queue: string): boolean =>
  Object.values<Task>(tasks).some((task) => queueOf(task) === `${queue}-dead-letter`)
