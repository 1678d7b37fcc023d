import type { Metric } from './metrics.ts'
import { prefix } from './stage.ts'

/** Something that somebody should know of. */
export interface AlarmSpec {
  /** Of docs/operations.md#alarms. */
  number: number
  /** What is the matter. */
  says: string
  /** What is watched: one metric, or several of which `formula` makes one number; it knows them as m0, m1, … */
  metrics: readonly Metric[]
  formula?: string
  statistic: 'Maximum' | 'SampleCount' | 'Sum' | `p${number}`
  /** It is wrong above this, or below that. */
  above?: number
  below?: number
  /** For so long at a time, five minutes if absent, and so many times in a row. */
  minutes?: number
  times?: number
  /** What silence means. */
  missing?: 'breaching' | 'notBreaching'
}

/** The formula that adds up so many metrics. */
export const sumOf = (metrics: readonly Metric[]): string =>
  `SUM([${metrics.map((_, index) => `m${index}`).join(', ')}])`

/** Makes the alarm, which tells the topic when it begins and when it ends. */
export function alarm(name: string, watch: AlarmSpec, topic: sst.aws.SnsTopic): void {
  const { number, says, above, below, times = 1, missing = 'notBreaching' } = watch
  new aws.cloudwatch.MetricAlarm(`${name}Alarm`, {
    name: `${prefix}-${name}`,
    alarmDescription: `${says} What to do: docs/operations.md, "Alarms", ${number}.`,
    ...watched(watch),
    evaluationPeriods: times,
    threshold: above ?? below ?? 0,
    comparisonOperator: above === undefined ? 'LessThanThreshold' : 'GreaterThanThreshold',
    treatMissingData: missing,
    alarmActions: [topic.arn],
    okActions: [topic.arn],
  })
}

function watched({ metrics, formula, statistic, minutes = 5 }: AlarmSpec) {
  const period = 60 * minutes
  if (formula !== undefined) {
    const terms = metrics.map((metric, index) => ({ id: `m${index}`, metric: { ...metric, period, stat: statistic } }))
    return { metricQueries: [{ id: 'result', expression: formula, returnData: true }, ...terms] }
  }
  const [metric] = metrics
  const isPercentile = statistic.startsWith('p')
  return { ...metric, period, ...(isPercentile ? { extendedStatistic: statistic } : { statistic }) }
}

/** Where alarms are told. Only alarms of this account may publish to it. */
export function alarmTopic(): sst.aws.SnsTopic {
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
