import { SQSClient } from '@aws-sdk/client-sqs'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { maxBodyBytes } from '@platform/local/gateway/body'
import type { Invoke } from '@platform/local/gateway/exchange'
import { createRouter } from '@platform/local/gateway/routes'
import { listen } from '@platform/local/gateway/server'
import { createMetrics } from '@platform/local/metrics/metrics'
import type { Log } from '@platform/local/log'
import { startQueuePoller } from '@platform/local/events/poller'
import { scheduledEvent, startSchedule } from '@platform/local/events/schedule'
import { explainListenError } from '@platform/local/start-error'
import * as z from 'zod'
import { mappingsOf, routesOf, schedulesOf } from '../graph/functions.ts'
import { type Graph, ofType } from '../graph/graph.ts'
import { sqsCalls } from '../../support/sqs-calls.ts'
import type { Cloud } from './cloud.ts'
import { functionOf, invokeFunction } from './invoke.ts'

export interface TriggerOptions {
  port: number
  hasClocks: boolean
  log: Log
}

const drainLimitMs = 5000

export async function startTriggers(cloud: Cloud, graph: Graph, { port, hasClocks, log }: TriggerOptions) {
  await using resources = new AsyncDisposableStack()
  const address = { host: '127.0.0.1', port, setting: '--port' }
  const gateway = await listen(address.host, port).catch(explainListenError(address))
  resources.defer(() => gateway.drain(drainLimitMs))
  gateway.open(routingOf(cloud, graph, log))
  for (const mapping of mappingsOf(graph)) resources.defer(consume(cloud, graph, mapping, log))
  const schedules = schedulesOf(graph).map((schedule) => triggerOf(cloud, schedule))
  if (hasClocks) for (const { start } of schedules) resources.defer(start(log))
  const started = resources.move()
  return {
    url: gateway.url,
    tick: async (name: string) => {
      const schedule = schedules.find(({ functionName }) => functionName === name)
      if (schedule === undefined) throw new Error(`${name} has no schedule.`)
      await schedule.tick()
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  }
}

function routingOf({ lambda }: Cloud, graph: Graph, log: Log) {
  const routes = routesOf(graph)
  const aliases = new Map(routes.map(({ functionName, alias }) => [functionName, alias]))
  const table = routes.flatMap(({ routeKey, functionName }) => {
    const [method = '', path] = routeKey.split(' ')
    return path === undefined ? [] : [{ method, path, functionName }]
  })
  const fallback = routes.find(({ routeKey }) => routeKey === '$default')?.functionName ?? ''
  // API Gateway reads the whole body and passes only the decoded path.
  const invoke: Invoke = async (functionName, event) =>
    event.isBodyPending
      ? { statusCode: 100, headers: { 'x-body-limit': String(maxBodyBytes) } }
      : invokeFunction(lambda, functionName, { ...event, sentPath: undefined }, aliases.get(functionName))
  // AWS has no Prometheus endpoint.
  const metrics = { begin: createMetrics(1).begin, scrape: async () => undefined }
  return { route: createRouter(table, fallback), invoke, log, metrics }
}

type Mapping = ReturnType<typeof mappingsOf>[number]
type Schedule = ReturnType<typeof schedulesOf>[number]

const BatchResponse = z.object({ batchItemFailures: z.array(z.object({ itemIdentifier: z.string() })) }).nullable()

/**
 * Polls a queue with the permissions of its function, like an event source mapping. Returns a function that stops
 * polling.
 */
function consume(
  { iamProxy, lambda, accessKeyOf }: Cloud,
  graph: Graph,
  mapping: Mapping,
  log: Log,
): () => Promise<void> {
  const [functionName = '', alias] = functionOf(mapping.functionName)
  const client = new SQSClient(clientSettings(iamProxy.urls.sqs, accessKeyOf(functionName)))
  const queueName = mapping.eventSourceArn.split(':').at(-1) ?? ''
  const poller = startQueuePoller({
    call: sqsCalls(client),
    queueUrl: `https://sqs/${queueName}`,
    queueArn: mapping.eventSourceArn,
    batchSize: mapping.batchSize,
    maximumConcurrency: mapping.scalingConfig.maximumConcurrency,
    visibilityTimeoutSeconds: visibilityOf(graph, mapping),
    invoke: async (event) => {
      const response = await invokeFunction(lambda, functionName, event, alias)
      // Without partial batch responses, a successful invocation means that no message has failed.
      return reportsFailures(mapping) ? BatchResponse.parse(response) : null
    },
    log,
  })
  return async () => {
    await poller.stop()
    client.destroy()
  }
}

const reportsFailures = ({ functionResponseTypes }: Mapping) =>
  functionResponseTypes.includes('ReportBatchItemFailures')

function visibilityOf(graph: Graph, { eventSourceArn }: Mapping): number {
  const queue = ofType(graph, 'aws:sqs/queue:Queue').find(({ state }) => state['arn'] === eventSourceArn)
  return Number(queue?.inputs['visibilityTimeoutSeconds'])
}

const unitMs: Record<string, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }

function triggerOf({ lambda }: Cloud, { name, scheduleExpression, target }: Schedule) {
  const [, count, unit = ''] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(scheduleExpression) ?? []
  if (count === undefined) throw new Error(`Unsupported schedule expression of ${name}: ${scheduleExpression}`)
  const [functionName = '', alias] = functionOf(target.arn)
  const intervalMs = Number(count) * (unitMs[unit] ?? Number.NaN)
  const invoke = (event: unknown) => invokeFunction(lambda, functionName, event, alias)
  return {
    functionName,
    tick: () => invoke(scheduledEvent(name, new Date())),
    start: (log: Log) => startSchedule({ name, intervalMs, invoke, log }).stop,
  }
}
