import { functionNames } from '@platform/core/updates/function-names'
import { functionsOf, mappingsOf, schedulesOf } from '../../simulator/graph/functions.ts'
import { type Graph, ofType } from '../../simulator/graph/graph.ts'

export interface Deployment {
  alarmMetrics: number
  /** Whether functions write the platform's own metrics. */
  hasMetrics: boolean
  dashboards: number
  secrets: number
  /** Length of a line in the gateway's access log; 0 if the gateway has no access log. */
  accessLogBytes: number
  /** Whether Lambda logs each invocation. */
  hasSystemLog: boolean
  /** Function → memory. */
  memoryMb: Record<string, number>
  logRetentionDays: number
  isRestorable: boolean
  consumers: number
  /** Function → runs in a month of 730 hours. */
  schedules: Record<string, number>
}

const minutesPerMonth = 730 * 60

export function deploymentOf(graph: Graph): Deployment {
  const resources = (type: string): any[] => ofType(graph, type).map(({ inputs }) => inputs)
  const [stage] = resources('aws:apigatewayv2/stage:Stage')
  const [table] = resources('aws:dynamodb/table:Table')
  const [lambda] = resources('aws:lambda/function:Function')
  return {
    alarmMetrics: resources('aws:cloudwatch/metricAlarm:MetricAlarm').reduce((sum, alarm) => sum + metricsOf(alarm), 0),
    hasMetrics: lambda.environment.variables.PLAT_METRICS === 'emf',
    dashboards: resources('aws:cloudwatch/dashboard:Dashboard').length,
    secrets: resources('aws:secretsmanager/secret:Secret').length,
    accessLogBytes: accessLogBytes(stage.accessLogSettings?.format ?? ''),
    hasSystemLog: lambda.loggingConfig?.systemLogLevel !== 'WARN',
    memoryMb: sorted(functionsOf(graph, functionNames).map(({ name, memoryMb }) => [name, memoryMb])),
    logRetentionDays: resources('aws:cloudwatch/logGroup:LogGroup')[0].retentionInDays,
    isRestorable: table.pointInTimeRecovery?.enabled === true,
    consumers: mappingsOf(graph).length,
    schedules: sorted(
      schedulesOf(graph).map(({ name, scheduleExpression }) => {
        const minutes = Number(/rate\((\d+) minutes?\)/.exec(scheduleExpression)?.[1])
        return [name.replace(/^platform-production-schedule-/, 'schedule/'), minutesPerMonth / minutes]
      }),
    ),
  }
}

const metricsOf = ({ metricQueries }: { metricQueries?: { metric?: unknown }[] }): number =>
  metricQueries?.filter(({ metric }) => metric !== undefined).length ?? 1

const sorted = (entries: [string, number][]): Record<string, number> =>
  Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)))

/** Sample values of the fields of the access log. Any other field counts as ten characters. */
const samples: Readonly<Record<string, string>> = {
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
  format.replaceAll(/\$context\.([\w.]+)/g, (_, name: string) => samples[name] ?? 'x'.repeat(10)).length
