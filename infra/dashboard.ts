import { apiFunctionNames } from './api.ts'
import { versions } from './functions.ts'
import { schedules, consumers, type Metric, tableThrottles } from './metrics.ts'
import {
  allFunctionsMetric,
  functionMetric,
  gatewayMetric,
  platformMetric,
  queueMetric,
  tableMetric,
} from './metrics.ts'
import { queues } from './queues.ts'
import { hasAlarms, prefix } from './stage.ts'

/** One page that shows how a platform is. */

interface Chart {
  title: string
  statistic: string
  metrics: readonly Metric[]
}

const each = <Name>(names: readonly Name[], metricOf: (name: Name) => Metric): Metric[] => names.map(metricOf)
const clockNames = schedules.map(({ name }) => name)
const allQueues = Object.values(queues)

const charts: readonly Chart[] = [
  { title: 'Requests', statistic: 'Sum', metrics: (['Count', '4xx', '5xx'] as const).map(gatewayMetric) },
  { title: 'Time to the answer, median', statistic: 'p50', metrics: [gatewayMetric('Latency')] },
  { title: 'Time to the answer, p99', statistic: 'p99', metrics: [gatewayMetric('Latency')] },
  {
    title: 'Requests of functions',
    statistic: 'Sum',
    metrics: each(apiFunctionNames, (name) => platformMetric('Requests', name)),
  },
  {
    title: 'Faults of functions',
    statistic: 'Sum',
    metrics: each(apiFunctionNames, (name) => platformMetric('Faults', name)),
  },
  {
    title: 'Time that functions take, p99',
    statistic: 'p99',
    metrics: each(apiFunctionNames, (name) => platformMetric('RequestDuration', name)),
  },
  {
    title: 'Functions that broke off',
    statistic: 'Sum',
    metrics: each(Object.keys(versions), (name) => functionMetric('Errors', name)),
  },
  {
    title: 'Functions at once, in this account',
    statistic: 'Maximum',
    metrics: [allFunctionsMetric('ConcurrentExecutions')],
  },
  { title: 'Functions refused, in this account', statistic: 'Sum', metrics: [allFunctionsMetric('Throttles')] },
  {
    title: 'Seconds that the oldest message waits',
    statistic: 'Maximum',
    metrics: each(allQueues, ({ queue }) => queueMetric('ApproximateAgeOfOldestMessage', queue)),
  },
  {
    title: 'Dead letters that wait',
    statistic: 'Maximum',
    metrics: each(allQueues, ({ deadLetter }) => queueMetric('ApproximateNumberOfMessagesVisible', deadLetter)),
  },
  {
    title: 'Messages that failed',
    statistic: 'Sum',
    metrics: each(consumers, (name) => platformMetric('MessagesFailed', name)),
  },
  { title: 'Runs of schedules', statistic: 'Sum', metrics: each(clockNames, (name) => platformMetric('Runs', name)) },
  {
    title: 'Time that schedules take',
    statistic: 'Maximum',
    metrics: each(clockNames, (name) => platformMetric('RunDuration', name)),
  },
  {
    title: 'How late sweeps and books are, in seconds',
    statistic: 'Maximum',
    metrics: [platformMetric('SweepLateness', 'schedule/sweep'), platformMetric('BooksLag', 'queue/events')],
  },
  {
    title: 'Capacity of the table that is used',
    statistic: 'Sum',
    metrics: (['ConsumedReadCapacityUnits', 'ConsumedWriteCapacityUnits'] as const).map(tableMetric),
  },
  {
    title: 'Calls that the table refused',
    statistic: 'Sum',
    metrics: tableThrottles,
  },
  {
    title: 'Sign-ins and deliveries that failed, records set aside',
    statistic: 'Sum',
    metrics: [
      platformMetric('SignInFailures', 'auth'),
      platformMetric('SignInFailures', 'users'),
      platformMetric('DeliveryFailures', 'queue/webhooks'),
      platformMetric('RecordsSetAside', 'queue/events'),
    ],
  },
]

const region = aws.getRegionOutput().region
const [width, height, columns] = [8, 6, 3]

/** Charts in the order of reading, three in a row. */
const widgets = charts.map(({ title, statistic, metrics }, index) => ({
  type: 'metric',
  x: (index % columns) * width,
  y: Math.floor(index / columns) * height,
  width,
  height,
  properties: {
    title,
    region,
    view: 'timeSeries',
    period: 300,
    stat: statistic,
    metrics: metrics.map(({ namespace, metricName, dimensions }) => [
      namespace,
      metricName,
      ...Object.entries(dimensions).flat(),
    ]),
  },
}))

if (hasAlarms) {
  new aws.cloudwatch.Dashboard('Dashboard', {
    dashboardName: prefix,
    dashboardBody: $jsonStringify({ widgets }),
  })
}
