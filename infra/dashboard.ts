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
import { globalPrefix, monitoring } from './stage.ts'

interface Chart {
  title: string
  statistic: string
  metrics: readonly Metric[]
}

const metricsFor = <Name>(names: readonly Name[], metricOf: (name: Name) => Metric): Metric[] => names.map(metricOf)
const scheduleNames = schedules.map(({ name }) => name)
const allQueues = Object.values(queues)

const charts: readonly Chart[] = [
  { title: 'Requests', statistic: 'Sum', metrics: (['Count', '4xx', '5xx'] as const).map(gatewayMetric) },
  { title: 'Latency, median', statistic: 'p50', metrics: [gatewayMetric('Latency')] },
  { title: 'Latency, p99', statistic: 'p99', metrics: [gatewayMetric('Latency')] },
  {
    title: 'Requests by function',
    statistic: 'Sum',
    metrics: metricsFor(apiFunctionNames, (name) => platformMetric('Requests', name)),
  },
  {
    title: 'Server errors by function',
    statistic: 'Sum',
    metrics: metricsFor(apiFunctionNames, (name) => platformMetric('ServerErrors', name)),
  },
  {
    title: 'Duration by function, p99',
    statistic: 'p99',
    metrics: metricsFor(apiFunctionNames, (name) => platformMetric('RequestDuration', name)),
  },
  {
    title: 'Failed invocations',
    statistic: 'Sum',
    metrics: metricsFor(Object.keys(versions), (name) => functionMetric('Errors', name)),
  },
  {
    title: 'Concurrent invocations in this account',
    statistic: 'Maximum',
    metrics: [allFunctionsMetric('ConcurrentExecutions')],
  },
  { title: 'Throttled invocations in this account', statistic: 'Sum', metrics: [allFunctionsMetric('Throttles')] },
  {
    title: 'Age of the oldest message in seconds',
    statistic: 'Maximum',
    metrics: metricsFor(allQueues, ({ queue }) => queueMetric('ApproximateAgeOfOldestMessage', queue)),
  },
  {
    title: 'Messages in dead-letter queues',
    statistic: 'Maximum',
    metrics: metricsFor(allQueues, ({ deadLetter }) => queueMetric('ApproximateNumberOfMessagesVisible', deadLetter)),
  },
  {
    title: 'Failed messages',
    statistic: 'Sum',
    metrics: metricsFor(consumers, (name) => platformMetric('MessagesFailed', name)),
  },
  {
    title: 'Scheduled runs',
    statistic: 'Sum',
    metrics: metricsFor(scheduleNames, (name) => platformMetric('ScheduledRuns', name)),
  },
  {
    title: 'Duration of scheduled runs',
    statistic: 'Maximum',
    metrics: metricsFor(scheduleNames, (name) => platformMetric('ScheduledRunDuration', name)),
  },
  {
    title: 'Delay of sweeps and projections in seconds',
    statistic: 'Maximum',
    metrics: [platformMetric('SweepDelay', 'schedule/sweep'), platformMetric('OutboxLag', 'queue/events')],
  },
  {
    title: 'Consumed table capacity',
    statistic: 'Sum',
    metrics: (['ConsumedReadCapacityUnits', 'ConsumedWriteCapacityUnits'] as const).map(tableMetric),
  },
  {
    title: 'Throttled table calls',
    statistic: 'Sum',
    metrics: tableThrottles,
  },
  {
    title: 'Failed sign-ins, failed deliveries, quarantined records',
    statistic: 'Sum',
    metrics: [
      platformMetric('SignInFailures', 'auth'),
      platformMetric('SignInFailures', 'users'),
      platformMetric('DeliveryFailures', 'queue/webhooks'),
      platformMetric('RecordsQuarantined', 'queue/events'),
    ],
  },
]

const region = aws.getRegionOutput().region
const [width, height, columnCount] = [8, 6, 3]

const widgets = charts.map(({ title, statistic, metrics }, index) => ({
  type: 'metric',
  x: (index % columnCount) * width,
  y: Math.floor(index / columnCount) * height,
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

if (monitoring === 'full') {
  new aws.cloudwatch.Dashboard('Dashboard', {
    dashboardName: globalPrefix,
    dashboardBody: $jsonStringify({ widgets }),
  })
}
