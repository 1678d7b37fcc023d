import { queues } from './queues.ts'
import { platformFunctions } from './functions.ts'
import { prefix } from './stage.ts'

/** What wakes somebody, as docs/operations.md explains: subscribe to the topic, or give `PLAT_ALARM_EMAIL` at the deployment. */

export const alarmTopic = new sst.aws.SnsTopic('Alarms', { transform: { topic: { name: `${prefix}-alarms` } } })

const email = process.env['PLAT_ALARM_EMAIL']
if (email) new aws.sns.TopicSubscription('AlarmsByEmail', { topic: alarmTopic.arn, protocol: 'email', endpoint: email })

interface Watch {
  namespace: string
  metric: string
  dimensions: Record<string, $util.Input<string>>
  statistic: 'Average' | 'Maximum' | 'Sum'
  above?: number
  below?: number
  minutes?: number
  /** What silence means. */
  missing?: 'breaching' | 'notBreaching'
}

function alarm(name: string, watch: Watch) {
  const { namespace, metric, dimensions, statistic, above, below, minutes = 5, missing = 'notBreaching' } = watch
  return new aws.cloudwatch.MetricAlarm(`${name}Alarm`, {
    name: `${prefix}-${name}`,
    namespace,
    metricName: metric,
    dimensions,
    statistic,
    period: 60 * minutes,
    evaluationPeriods: 1,
    threshold: above ?? below ?? 0,
    comparisonOperator: above === undefined ? 'LessThanThreshold' : 'GreaterThanThreshold',
    treatMissingData: missing,
    alarmActions: [alarmTopic.arn],
    okActions: [alarmTopic.arn],
  })
}

for (const [name, { queue, deadLetter }] of Object.entries(queues)) {
  const inQueue = { namespace: 'AWS/SQS', statistic: 'Maximum' } as const
  alarm(`${name}-age`, {
    ...inQueue,
    metric: 'ApproximateAgeOfOldestMessage',
    dimensions: { QueueName: queue.nodes.queue.name },
    above: name === 'updates' ? 1800 : 300,
  })
  // Its consumer takes them at once: what was sent there counts, not what is left.
  alarm(`${name}-dead-letters`, {
    namespace: 'AWS/SQS',
    statistic: 'Sum',
    metric: 'NumberOfMessagesSent',
    dimensions: { QueueName: deadLetter.nodes.queue.name },
    above: 0,
  })
}

for (const { name, functionName } of platformFunctions) {
  const ofFunction = { dimensions: { FunctionName: functionName }, statistic: 'Sum', above: 0 } as const
  alarm(`${name}-errors`, { ...ofFunction, namespace: 'AWS/Lambda', metric: 'Errors' })
  alarm(`${name}-throttles`, { ...ofFunction, namespace: 'AWS/Lambda', metric: 'Throttles' })
}
