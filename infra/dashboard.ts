import { apiFunctionNames } from './api.ts'
import { versions } from './functions.ts'
import { clocks, consumers, type Metric, tableRefusals } from './metrics.ts'
import { ofAllFunctions, ofFunction, ofGateway, ofPlatform, ofQueue, ofTable } from './metrics.ts'
import { queues } from './queues.ts'
import { isWatched, prefix } from './stage.ts'

/** One page that shows how a platform is. */

interface Chart {
  title: string
  statistic: string
  metrics: readonly Metric[]
}

const each = <Name>(names: readonly Name[], metricOf: (name: Name) => Metric): Metric[] => names.map(metricOf)
const clockNames = clocks.map(({ name }) => name)
const allQueues = Object.values(queues)

const charts: readonly Chart[] = [
  { title: 'Requests', statistic: 'Sum', metrics: (['Count', '4xx', '5xx'] as const).map(ofGateway) },
  { title: 'Time to the answer, median', statistic: 'p50', metrics: [ofGateway('Latency')] },
  { title: 'Time to the answer, p99', statistic: 'p99', metrics: [ofGateway('Latency')] },
  {
    title: 'Requests of functions',
    statistic: 'Sum',
    metrics: each(apiFunctionNames, (name) => ofPlatform('Requests', name)),
  },
  {
    title: 'Faults of functions',
    statistic: 'Sum',
    metrics: each(apiFunctionNames, (name) => ofPlatform('Faults', name)),
  },
  {
    title: 'Time that functions take, p99',
    statistic: 'p99',
    metrics: each(apiFunctionNames, (name) => ofPlatform('RequestDuration', name)),
  },
  {
    title: 'Functions that broke off',
    statistic: 'Sum',
    metrics: each(Object.keys(versions), (name) => ofFunction('Errors', name)),
  },
  {
    title: 'Functions at once, in this account',
    statistic: 'Maximum',
    metrics: [ofAllFunctions('ConcurrentExecutions')],
  },
  { title: 'Functions refused, in this account', statistic: 'Sum', metrics: [ofAllFunctions('Throttles')] },
  {
    title: 'Seconds that the oldest message waits',
    statistic: 'Maximum',
    metrics: each(allQueues, ({ queue }) => ofQueue('ApproximateAgeOfOldestMessage', queue)),
  },
  {
    title: 'Dead letters that wait',
    statistic: 'Maximum',
    metrics: each(allQueues, ({ deadLetter }) => ofQueue('ApproximateNumberOfMessagesVisible', deadLetter)),
  },
  {
    title: 'Messages that failed',
    statistic: 'Sum',
    metrics: each(consumers, (name) => ofPlatform('MessagesFailed', name)),
  },
  { title: 'Runs of schedules', statistic: 'Sum', metrics: each(clockNames, (name) => ofPlatform('Runs', name)) },
  {
    title: 'Time that schedules take',
    statistic: 'Maximum',
    metrics: each(clockNames, (name) => ofPlatform('RunDuration', name)),
  },
  {
    title: 'How late sweeps and books are, in seconds',
    statistic: 'Maximum',
    metrics: [ofPlatform('SweepLateness', 'schedule/sweep'), ofPlatform('BooksLag', 'queue/events')],
  },
  {
    title: 'Capacity of the table that is used',
    statistic: 'Sum',
    metrics: (['ConsumedReadCapacityUnits', 'ConsumedWriteCapacityUnits'] as const).map(ofTable),
  },
  {
    title: 'Calls that the table refused',
    statistic: 'Sum',
    metrics: tableRefusals,
  },
  {
    title: 'Sign-ins and deliveries that failed, records set aside',
    statistic: 'Sum',
    metrics: [
      ofPlatform('SignInFailures', 'auth'),
      ofPlatform('SignInFailures', 'users'),
      ofPlatform('DeliveryFailures', 'queue/webhooks'),
      ofPlatform('RecordsSetAside', 'queue/events'),
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

if (isWatched) {
  new aws.cloudwatch.Dashboard('Dashboard', {
    dashboardName: prefix,
    dashboardBody: $jsonStringify({ widgets }),
  })
}
