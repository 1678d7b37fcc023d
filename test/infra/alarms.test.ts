import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tableIndexes } from '@platform/core/db/schema'
import { expect, test } from 'vitest'
import { type Graph, ofType } from '../simulator/graph/graph.ts'
import { programs, type ShownMetric, alarmMetrics, writtenMetrics } from './metrics.ts'
import { byText, deployedFunctions, deployedBy, dev, fullGraph, inputsOf, production } from './stages.ts'

const fullMonitoringGraph = await fullGraph()
const alarms = inputsOf(fullMonitoringGraph, 'aws:cloudwatch/metricAlarm:MetricAlarm')
const metricsByAlarm = alarmMetrics(fullMonitoringGraph)
const dashboards = ofType(fullMonitoringGraph, 'aws:cloudwatch/dashboard:Dashboard').map(({ inputs }) =>
  JSON.parse(String(inputs['dashboardBody'])),
)
const pairs = (values: string[]) =>
  values.flatMap((name, index) => (index % 2 === 0 ? [[name, values[index + 1]]] : []))
const chartMetrics: ShownMetric[] = dashboards
  .flatMap(({ widgets }) => widgets)
  .flatMap(({ properties }) => properties.metrics)
  .map(([namespace, metricName, ...dimensions]: string[]) => ({
    namespace: namespace!,
    metricName: metricName!,
    dimensions: Object.fromEntries(pairs(dimensions)),
  }))
const allMetrics = [...[...metricsByAlarm.values()].flat(), ...chartMetrics]

const nameOf = (functionName: string | undefined) => deployedBy(functionName)?.name ?? ''
const platformMetrics = allMetrics.filter(({ namespace }) => namespace === 'Platform')

test('alarms and dashboard read metrics that the functions write, by namespace, name and dimension', async () => {
  expect(platformMetrics).not.toHaveLength(0)
  const [{ functionName }] = deployedFunctions as [(typeof deployedFunctions)[number]]
  const metrics = await writtenMetrics(functionName)
  expect(metrics.value).toBe(functionName)
  for (const { namespace, metricName, dimensions } of platformMetrics) {
    expect(namespace).toBe(metrics.namespace)
    expect(metrics.names).toContain(metricName)
    expect(metrics.dimensions).toContainEqual(Object.keys(dimensions))
  }
})

test('each metric is written by the function that it is read from', async () => {
  const code = await programs()
  const contains = (name: string, metric: string) => code.get(name)?.includes(`"${metric}"`) === true
  expect([contains('schedule/sweep', 'SweepDelay'), contains('auth', 'SweepDelay')]).toEqual([true, false])
  const unwrittenMetrics = platformMetrics.filter(
    ({ metricName, dimensions }) => !contains(nameOf(dimensions['Function']), metricName),
  )
  expect(unwrittenMetrics).toEqual([])
  for (const metric of [
    'SweepDelay',
    'SweepFailures',
    'OutboxLag',
    'RecordsQuarantined',
    'SignInFailures',
    'DeliveryFailures',
  ]) {
    const writers = [...code.keys()].filter((name) => contains(name, metric))
    const watchedMetrics = [...metricsByAlarm.values()].flat().filter(({ metricName }) => metricName === metric)
    expect(watchedMetrics.map(({ dimensions }) => nameOf(dimensions['Function'])).toSorted(byText), metric).toEqual(
      writers.toSorted(byText),
    )
  }
})

const awsMetrics: Record<string, { metrics: string[]; dimension: string; type: string; attribute: string }> = {
  'AWS/Lambda': {
    metrics: ['Errors', 'Duration', 'Throttles', 'ConcurrentExecutions'],
    dimension: 'FunctionName',
    type: 'aws:lambda/function:Function',
    attribute: 'name',
  },
  'AWS/SQS': {
    metrics: ['ApproximateAgeOfOldestMessage', 'ApproximateNumberOfMessagesVisible', 'NumberOfMessagesReceived'],
    dimension: 'QueueName',
    type: 'aws:sqs/queue:Queue',
    attribute: 'name',
  },
  'AWS/ApiGateway': {
    metrics: ['Count', '4xx', '5xx', 'Latency'],
    dimension: 'ApiId',
    type: 'aws:apigatewayv2/api:Api',
    attribute: 'id',
  },
  'AWS/DynamoDB': {
    metrics: ['ReadThrottleEvents', 'WriteThrottleEvents', 'ConsumedReadCapacityUnits', 'ConsumedWriteCapacityUnits'],
    dimension: 'TableName',
    type: 'aws:dynamodb/table:Table',
    attribute: 'name',
  },
}
const accountMetrics = ['Throttles', 'ConcurrentExecutions']

const namesOf = (graph: Graph, type: string, attribute: string) =>
  ofType(graph, type).map(({ name, state }) => (attribute === 'id' ? `${name}-id` : String(state[attribute])))

test('AWS metrics exist and belong to resources of this deployment', () => {
  for (const { namespace, metricName, dimensions } of allMetrics) {
    if (namespace === 'Platform') continue
    const { metrics = [], dimension = '', type = '', attribute = '' } = awsMetrics[namespace] ?? {}
    expect(metrics, namespace).toContain(metricName)
    const { GlobalSecondaryIndexName: index, ...ofResource } = dimensions
    if (index !== undefined) expect([namespace, index in tableIndexes]).toEqual(['AWS/DynamoDB', true])
    const [[name, value] = [], ...others] = Object.entries(ofResource)
    expect(others).toEqual([])
    if (namespace === 'AWS/Lambda' && accountMetrics.includes(metricName)) expect(name).toBeUndefined()
    else expect([name, namesOf(fullMonitoringGraph, type, attribute).includes(value ?? '')]).toEqual([dimension, true])
  }
})

test('throttling of the table and of each index is monitored separately', () => {
  const throttles = metricsByAlarm.get('platform-production-table-throttles') ?? []
  const metrics = throttles.map(({ metricName, dimensions }) => [metricName, dimensions['GlobalSecondaryIndexName']])
  const expected = [
    ['ReadThrottleEvents', undefined],
    ...[undefined, ...Object.keys(tableIndexes)].map((index) => ['WriteThrottleEvents', index]),
  ]
  expect(metrics.toSorted(byText)).toEqual(expected.toSorted(byText))
})

test('a message sent with the longest delay triggers no age alarm', () => {
  const longestDelaySeconds = 900
  for (const queue of ['webhooks', 'modules']) {
    const age = alarms.find(({ name }) => name === `platform-production-${queue}-age`)
    expect(age.threshold, queue).toBeGreaterThan(longestDelaySeconds)
  }
})

test('every queue has alarms for its age and its dead letters', () => {
  const queues = namesOf(fullMonitoringGraph, 'aws:sqs/queue:Queue', 'name')
  const workQueues = queues.filter((name) => !name.endsWith('-dead-letter'))
  const metrics = [...metricsByAlarm.values()].flat().filter(({ namespace }) => namespace === 'AWS/SQS')
  const consumedQueues = ['batches', 'installs', 'updates']
  const expected = workQueues.flatMap((name) => {
    const isConsumed = consumedQueues.some((each) => name.endsWith(`-${each}`))
    const metric = isConsumed ? 'NumberOfMessagesReceived' : 'ApproximateNumberOfMessagesVisible'
    return [
      [name, 'ApproximateAgeOfOldestMessage'],
      [`${name}-dead-letter`, metric],
    ]
  })
  expect(metrics.map(({ metricName, dimensions }) => [dimensions['QueueName'], metricName]).toSorted(byText)).toEqual(
    expected.toSorted(byText),
  )
})

test('every schedule and queue consumer has an error alarm; dead letters have one of their own', () => {
  const errors = [...metricsByAlarm.values()].flat().filter(({ metricName }) => metricName === 'Errors')
  const background = deployedFunctions.filter(
    ({ name }) => name.includes('/') && name !== 'gateway/modules' && !name.endsWith('-dead-letter'),
  )
  expect(errors.map(({ dimensions }) => dimensions['FunctionName']).toSorted(byText)).toEqual(
    background.map(({ functionName }) => functionName).toSorted(byText),
  )
})

test('a missing sweep triggers an alarm; other missing data does not', () => {
  const breachingAlarms = alarms.filter(({ treatMissingData }) => treatMissingData === 'breaching')
  expect(breachingAlarms.map(({ name }) => name)).toEqual(['platform-production-sweep-missing'])
  expect(breachingAlarms[0]).toMatchObject({
    metricName: 'ScheduledRunDuration',
    statistic: 'SampleCount',
    period: 300,
    comparisonOperator: 'LessThanThreshold',
    threshold: 1,
  })
  expect(new Set(alarms.map(({ treatMissingData }) => treatMissingData))).toEqual(
    new Set(['breaching', 'notBreaching']),
  )
})

test('every alarm notifies the topic at its start and end, and has instructions', async () => {
  const [topic] = ofType(fullMonitoringGraph, 'aws:sns/topic:Topic')
  const page = await readFile(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')
  const instructions = page.slice(page.indexOf('\n## Alarms'), page.indexOf('\n## Backup and restore'))
  for (const { name, alarmDescription, alarmActions, okActions } of alarms) {
    expect([alarmActions, okActions]).toEqual([[topic!.state['arn']], [topic!.state['arn']]])
    const [, number] = /docs\/operations\.md, "Alarms", (\d+)\.$/.exec(alarmDescription) ?? []
    expect(instructions, name).toMatch(new RegExp(`^${number}\\. \\*\\*`, 'm'))
  }
})

test('all alarms use at most fifty metrics', () => {
  expect([...metricsByAlarm.values()].flat().length).toBeLessThanOrEqual(50)
})

test('a formula combines at most ten metrics into one number', () => {
  for (const { name, metricQueries = [] } of alarms) {
    const terms = metricQueries.filter(({ metric }: any) => metric)
    expect(terms.length, name).toBeLessThanOrEqual(10)
    const results = metricQueries.filter(({ returnData }: any) => returnData)
    if (metricQueries.length === 0) continue
    const usedIds = new Set(results.flatMap(({ expression }: any) => expression.match(/\bm\d+\b/g)))
    expect(usedIds, name).toEqual(new Set(terms.map(({ id }: any) => id)))
    expect(results).toHaveLength(1)
  }
})

test('only alarms of this account may publish to the topic', () => {
  const [policy] = ofType(fullMonitoringGraph, 'aws:sns/topicPolicy:TopicPolicy')
  const { Statement } = JSON.parse(String(policy?.inputs['policy']))
  expect(Statement).toEqual([
    {
      Effect: 'Allow',
      Action: ['sns:Publish'],
      Resource: [expect.stringMatching(/:platform-production-alarms$/)],
      Principal: { Service: ['cloudwatch.amazonaws.com'] },
      Condition: { StringEquals: { 'aws:SourceAccount': ['000000000000'] } },
    },
  ])
})

test('basic monitoring costs six dollars a month with everything else: few alarms, no metrics of its own, no dashboard', () => {
  const basic = inputsOf(production, 'aws:cloudwatch/metricAlarm:MetricAlarm')
  const names = ['api-server-errors', 'events-age', 'function-errors', 'lambda-throttles', 'sweep-missing']
  expect(basic.map(({ name }) => name).toSorted(byText)).toEqual(names.map((name) => `platform-production-${name}`))
  expect(basic.filter(({ namespace }) => !String(namespace).startsWith('AWS/'))).toEqual([])
  expect(ofType(production, 'aws:cloudwatch/dashboard:Dashboard')).toEqual([])
  expect(deployedFunctions[0]?.environment['PLAT_METRICS']).toBe('off')
})

test('a stage without an alarm address has no alarms and no dashboard', () => {
  const paidTypes = [
    'aws:cloudwatch/metricAlarm:MetricAlarm',
    'aws:cloudwatch/dashboard:Dashboard',
    'aws:sns/topic:Topic',
  ]
  expect(paidTypes.flatMap((type) => ofType(dev, type))).toEqual([])
  const subscriptions = inputsOf(fullMonitoringGraph, 'aws:sns/topicSubscription:TopicSubscription')
  expect(subscriptions).toMatchObject([{ protocol: 'email', endpoint: 'alarms@example.com' }])
})

test('the dashboard has valid charts within 24 columns', () => {
  expect(dashboards).toHaveLength(1)
  const widgets: any[] = dashboards[0].widgets
  expect(new Set(widgets.map(({ properties }) => properties.title)).size).toBe(widgets.length)
  const cells = widgets.flatMap(({ x, y, width, height }) =>
    Array.from({ length: width * height }, (_, index) => `${x + (index % width)},${y + Math.floor(index / width)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
  for (const { type, x, width, properties } of widgets) {
    expect([type, properties.region, x + width <= 24]).toEqual(['metric', 'us-east-1', true])
    expect(properties.metrics.length).toBeGreaterThan(0)
    expect(properties.metrics.length).toBeLessThanOrEqual(100)
    expect(properties.stat).toMatch(/^(?:Sum|Maximum|p\d\d)$/)
  }
  expect(Buffer.byteLength(JSON.stringify(dashboards[0]))).toBeLessThan(1024 * 1024)
})
