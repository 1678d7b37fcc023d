import type { Metric } from './metrics.ts'
import { prefix } from './stage.ts'

export interface AlarmSpec {
  /** Number of the row in docs/operations.md#alarms. */
  number: number
  description: string
  /** Inputs of the alarm. `formula` combines several inputs into one number and calls them m0, m1, … */
  metrics: readonly Metric[]
  formula?: string
  statistic: 'Maximum' | 'SampleCount' | 'Sum' | `p${number}`
  /** The threshold: set either `above` or `below`. */
  above?: number
  below?: number
  /**
   * `periodMinutes` is the length of an evaluation period (default 5). The alarm starts after `periodCount` consecutive
   * periods beyond the threshold (default 1).
   */
  periodMinutes?: number
  periodCount?: number
  /** Whether a period without data counts as beyond the threshold (`breaching`) or within it (default). */
  missingData?: 'breaching' | 'notBreaching'
}

export const sumExpression = (metrics: readonly Metric[]): string =>
  `SUM([${metrics.map((_, index) => `m${index}`).join(', ')}])`

/** Creates an alarm that notifies the topic when the alarm starts and when it ends. */
export function createAlarm(name: string, spec: AlarmSpec, topic: sst.aws.SnsTopic): void {
  const { number, description, above, below, periodCount = 1, missingData = 'notBreaching' } = spec
  new aws.cloudwatch.MetricAlarm(`${name}Alarm`, {
    name: `${prefix}-${name}`,
    alarmDescription: `${description} See docs/operations.md, "Alarms", ${number}.`,
    ...metricQueries(spec),
    evaluationPeriods: periodCount,
    threshold: above ?? below ?? 0,
    comparisonOperator: above === undefined ? 'LessThanThreshold' : 'GreaterThanThreshold',
    treatMissingData: missingData,
    alarmActions: [topic.arn],
    okActions: [topic.arn],
  })
}

function metricQueries({ metrics, formula, statistic, periodMinutes = 5 }: AlarmSpec) {
  const period = 60 * periodMinutes
  if (formula !== undefined) {
    const terms = metrics.map((metric, index) => ({ id: `m${index}`, metric: { ...metric, period, stat: statistic } }))
    return { metricQueries: [{ id: 'result', expression: formula, returnData: true }, ...terms] }
  }
  const [metric] = metrics
  const isPercentile = statistic.startsWith('p')
  return { ...metric, period, ...(isPercentile ? { extendedStatistic: statistic } : { statistic }) }
}

/** Creates the topic to which only CloudWatch may publish, for alarms of this account. */
export function createAlarmTopic(): sst.aws.SnsTopic {
  const topic = new sst.aws.SnsTopic('Alarms', { transform: { topic: { name: `${prefix}-alarms` } } })
  const account = aws.getCallerIdentityOutput().accountId
  new aws.sns.TopicPolicy('AlarmsPolicy', {
    arn: topic.arn,
    policy: aws.iam.getPolicyDocumentOutput({
      statements: [
        {
          actions: ['sns:Publish'],
          resources: [topic.arn],
          principals: [{ type: 'Service', identifiers: ['cloudwatch.amazonaws.com'] }],
          conditions: [{ test: 'StringEquals', variable: 'aws:SourceAccount', values: [account] }],
        },
      ],
    }).json,
  })
  return topic
}
