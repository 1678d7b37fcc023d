import { functionNames } from '@platform/core/updates/function-names'
import { type Graph, ofType } from '../../simulator/graph/graph.ts'
import { functionsOf, mappingsOf } from '../../simulator/graph/functions.ts'

/** What a deployment consists of, as far as it costs something or sets a limit. */
export interface Deployment {
  functions: number
  /** Alarms are paid for by the metrics that they look at. */
  alarms: string[]
  alarmMetrics: number
  dashboards: number
  secrets: number
  routes: number
  /** Whether the gateway writes metrics for each route: each of them is charged for. */
  hasRouteMetrics: boolean
  requestsPerSecond: number
  /** Bytes of a line in the gateway's own log, as long as its fields usually are; 0 where it keeps none. */
  accessLogBytes: number
  /** Whether Lambda writes lines of its own about each invocation. */
  hasSystemLog: boolean
  /** By function. */
  memoryMb: Record<string, number>
  logRetentionDays: number
  isRestorable: boolean
  /** Queues that functions are called for, and the most that are called at once; undefined where Lambda decides. */
  consumers: { queue: string; batchSize: number; maximumConcurrency?: number }[]
  /** Runs in a month of 730 hours, by function. */
  schedules: Record<string, number>
}

const alarmType = 'aws:cloudwatch/metricAlarm:MetricAlarm'
const minutesPerMonth = 730 * 60

/** What the configuration asks for, by the graph of the stage that people rely on. */
export function deploymentOf(graph: Graph): Deployment {
  const count = (type: string) => ofType(graph, type).length
  const inputsOf = (type: string): any => ofType(graph, type)[0]?.inputs ?? {}
  const stage = inputsOf('aws:apigatewayv2/stage:Stage')
  const made = inputsOf('aws:lambda/function:Function')
  const level = made.loggingConfig?.systemLogLevel
  return {
    functions: count('aws:lambda/function:Function'),
    alarms: ofType(graph, alarmType)
      .map(({ inputs }) => String(inputs['name']).replace(/^platform-production-/, ''))
      .toSorted(),
    alarmMetrics: ofType(graph, alarmType).reduce((sum, { inputs }) => sum + metricsOf(inputs), 0),
    dashboards: count('aws:cloudwatch/dashboard:Dashboard'),
    secrets: count('aws:secretsmanager/secret:Secret'),
    routes: count('aws:apigatewayv2/route:Route'),
    hasRouteMetrics: stage.defaultRouteSettings?.detailedMetricsEnabled === true,
    requestsPerSecond: stage.defaultRouteSettings?.throttlingRateLimit ?? 0,
    accessLogBytes: accessLogBytes(stage.accessLogSettings?.format ?? ''),
    hasSystemLog: level !== 'WARN',
    memoryMb: memoryOf(graph),
    logRetentionDays: inputsOf('aws:cloudwatch/logGroup:LogGroup').retentionInDays,
    isRestorable: inputsOf('aws:dynamodb/table:Table').pointInTimeRecovery?.enabled === true,
    consumers: consumersOf(graph),
    schedules: schedulesOf(graph),
  }
}

function metricsOf({ metricQueries }: Record<string, any>): number {
  if (metricQueries === undefined) return 1
  return metricQueries.filter(({ metric }: { metric?: unknown }) => metric !== undefined).length
}

/** By name: the order in which resources are made is no order. */
const sorted = (entries: (readonly [string, number])[]): Record<string, number> =>
  Object.fromEntries(entries.toSorted(([one], [other]) => (one < other ? -1 : 1)))

const memoryOf = (graph: Graph): Record<string, number> =>
  sorted(functionsOf(graph, functionNames).map(({ name, memoryMb }) => [name, memoryMb]))

const consumersOf = (graph: Graph): Deployment['consumers'] =>
  mappingsOf(graph)
    .map(({ eventSourceArn, batchSize, scalingConfig }) => {
      const queue = eventSourceArn.replace(/^.*:platform-production-/, '')
      return Object.assign({ queue, batchSize }, scalingConfig)
    })
    .toSorted((one, other) => (one.queue < other.queue ? -1 : 1))

function schedulesOf(graph: Graph): Record<string, number> {
  const runs = ofType(graph, 'aws:scheduler/schedule:Schedule').map(({ inputs }) => {
    const minutes = Number(/rate\((\d+) minutes?\)/.exec(String(inputs['scheduleExpression']))?.[1])
    const name = String(inputs['name']).replace(/^platform-production-schedule-/, 'schedule/')
    return [name, minutesPerMonth / minutes] as const
  })
  return sorted(runs)
}

/** What stands for the fields of the gateway's log; what is not named here is about ten characters long. */
const samples: Record<string, string> = {
  requestTime: '22/Nov/2026:07:50:57 +0000',
  requestId: 'BsU1nhrbIAMEVfQ=',
  'integration.requestId': '0b6f6f3c-6d2c-4a3f-9e0a-5c1f6a2d9b11',
  httpMethod: 'POST',
  path: '/api/v1/relay/heartbeat',
  routeKey: 'POST /api/v1/relay/heartbeat',
  status: '200',
  responseLatency: '24',
  'integration.status': '200',
  'integration.latency': '22',
  'integration.integrationStatus': '200',
  'identity.sourceIp': '203.0.113.17',
  'identity.userAgent': 'platform-relay/0.1.0 (linux; node 24.21.0)',
}

const accessLogBytes = (format: string): number =>
  format === ''
    ? 0
    : format.replaceAll(/\$context\.([\w.]+)/g, (_, name: string) => samples[name] ?? 'x'.repeat(10)).length
