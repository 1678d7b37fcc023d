import { createAlarm, createAlarmTopic, sumExpression, type AlarmSpec } from './alarm.ts'
import { consumers, hasDeadLetterConsumer, schedules, tableThrottles } from './metrics.ts'
import { allFunctionsMetric, functionMetric, gatewayMetric, platformMetric, queueMetric } from './metrics.ts'
import { options } from './options.ts'
import { queues } from './queues.ts'
import { monitoring } from './stage.ts'

/** docs/operations.md#alarms has the instructions for each alarm. */

/**
 * Excludes the consumers of dead-letter queues, because dead letters have their own alarm. Includes `queue/presence`,
 * which AWS IoT invokes without a queue.
 */
const consumerErrors = [...consumers.filter((name) => !name.endsWith('-dead-letter')), 'queue/presence'].map((name) =>
  functionMetric('Errors', name),
)
const scheduleErrors = schedules.map(({ name }) => functionMetric('Errors', name))
const sweepFailures = ['schedule/sweep', 'queue/events'].map((name) => platformMetric('SweepFailures', name))
/** Both functions verify passwords: `users` verifies the old password on a password change. */
const signInFailures = [platformMetric('SignInFailures', 'auth'), platformMetric('SignInFailures', 'users')]

/** No API function holds a request open to wait for an event, so a high latency means slow processing. */
const latencyAlarm: AlarmSpec = {
  number: 9,
  description: 'More than 5 % of the responses take longer than three seconds.',
  metrics: [gatewayMetric('Latency')],
  statistic: 'p95',
  above: 3000,
  periodCount: 3,
}

const throttleAlarm: AlarmSpec = {
  number: 13,
  description: 'Lambda throttles functions: the account, or a function with reserved concurrency, is at its limit.',
  metrics: [allFunctionsMetric('Throttles')],
  statistic: 'Sum',
  above: 10,
}

const metricAlarms: Record<string, AlarmSpec> = {
  'api-server-errors': {
    number: 2,
    description: 'At least five requests fail, and more than 1 % of all requests.',
    metrics: [gatewayMetric('5xx'), gatewayMetric('Count')],
    formula: 'IF(m0 >= 5, m0 / m1, 0)',
    statistic: 'Sum',
    above: 0.01,
  },
  'api-latency-high': latencyAlarm,
  'sweep-missing': {
    number: 3,
    description: 'No sweep has succeeded for five minutes.',
    // Only successful runs record a duration.
    metrics: [platformMetric('ScheduledRunDuration', 'schedule/sweep')],
    statistic: 'SampleCount',
    below: 1,
    missingData: 'breaching',
  },
  'sweep-delayed': {
    number: 4,
    description: 'Sweeps find items that were due more than three minutes earlier.',
    metrics: [platformMetric('SweepDelay', 'schedule/sweep')],
    statistic: 'Maximum',
    above: 180,
    periodCount: 3,
  },
  'sweep-failures': {
    number: 4,
    description: 'A sweep failed for an item; the log of the sweep names the item.',
    metrics: sweepFailures,
    formula: sumExpression(sweepFailures),
    statistic: 'Sum',
    above: 0,
  },
  'outbox-lag': {
    number: 7,
    description: 'Projections lag behind changes by more than five minutes.',
    metrics: [platformMetric('OutboxLag', 'queue/events')],
    statistic: 'Maximum',
    above: 300,
  },
  'outbox-quarantine': {
    number: 7,
    description: 'A projection rejected an outbox record, which is quarantined.',
    metrics: [platformMetric('RecordsQuarantined', 'queue/events')],
    statistic: 'Sum',
    above: 0,
  },
  'sign-in-failures': {
    number: 10,
    description: 'More than twenty sign-ins a minute fail.',
    metrics: signInFailures,
    formula: sumExpression(signInFailures),
    statistic: 'Sum',
    above: 100,
  },
  'webhook-delivery-errors': {
    number: 11,
    description: 'More than a hundred webhook deliveries failed within 15 minutes.',
    metrics: [platformMetric('DeliveryFailures', 'queue/webhooks')],
    statistic: 'Sum',
    above: 100,
    periodMinutes: 15,
  },
  'queue-consumer-errors': {
    number: 8,
    description: 'Queue consumers fail: they throw or time out.',
    metrics: consumerErrors,
    formula: sumExpression(consumerErrors),
    statistic: 'Sum',
    above: 0,
  },
  'scheduled-run-errors': {
    number: 8,
    description: 'Scheduled functions fail: they throw or time out.',
    metrics: scheduleErrors,
    formula: sumExpression(scheduleErrors),
    statistic: 'Sum',
    above: 0,
  },
  'lambda-throttles': throttleAlarm,
  'table-throttles': {
    number: 13,
    description: 'DynamoDB throttles the table, an index or a partition.',
    metrics: tableThrottles,
    formula: sumExpression(tableThrottles),
    statistic: 'Sum',
    above: 10,
  },
}

/** The duration of the two excluded functions does not grow with the number of clusters. */
const timeoutAlarms = schedules
  .filter(({ name }) => !['schedule/write-check', 'schedule/checkpoints'].includes(name))
  .map(({ name, timeoutSeconds }): [string, AlarmSpec] => [
    `${name.replace('schedule/', '')}-near-limit`,
    {
      number: 8,
      description: `${name} uses more than 80 % of its timeout of ${timeoutSeconds} seconds.`,
      metrics: [functionMetric('Duration', name)],
      statistic: 'Maximum',
      above: 800 * timeoutSeconds,
      periodCount: 2,
    },
  ])

/**
 * Queues whose messages may wait for more than 300 seconds: installs and updates run for minutes, and retries of
 * webhooks and modules are delayed by up to 900 seconds.
 */
const maxWaitSeconds: Record<string, number> = { installs: 1800, updates: 1800, webhooks: 1200, modules: 1200 }

const queueAlarms = Object.entries(queues).flatMap(([name, { queue, deadLetter }]): [string, AlarmSpec][] => {
  const maxAgeSeconds = maxWaitSeconds[name] ?? 300
  const oldestMessageAge: AlarmSpec = {
    number: 5,
    description: `A message of the queue ${name} has waited for ${maxAgeSeconds} seconds.`,
    metrics: [queueMetric('ApproximateAgeOfOldestMessage', queue)],
    statistic: 'Maximum',
    above: maxAgeSeconds,
  }
  // SQS does not count messages that it moves to a dead-letter queue as sent. The alarm counts receives if a function
  // consumes the dead-letter queue, and otherwise checks the number of waiting messages.
  const deadLetters: AlarmSpec = {
    number: 6,
    description: `A message of the queue ${name} failed five times.`,
    metrics: [
      queueMetric(
        hasDeadLetterConsumer(name) ? 'NumberOfMessagesReceived' : 'ApproximateNumberOfMessagesVisible',
        deadLetter,
      ),
    ],
    statistic: hasDeadLetterConsumer(name) ? 'Sum' : 'Maximum',
    above: 0,
  }
  return [
    [`${name}-age`, oldestMessageAge],
    [`${name}-dead-letters`, deadLetters],
  ]
})

const sweepRuns = functionMetric('Invocations', 'schedule/sweep')

/** Alarms on metrics that AWS records free of charge, so that an idle platform costs little. */
const basicAlarms: Record<string, AlarmSpec> = {
  'api-server-errors': {
    number: 2,
    description: 'At least five requests fail.',
    metrics: [gatewayMetric('5xx')],
    statistic: 'Sum',
    above: 4,
  },
  'sweep-missing': {
    number: 3,
    description: 'No sweep has run for five minutes.',
    metrics: [sweepRuns],
    statistic: 'Sum',
    below: 1,
    missingData: 'breaching',
  },
  'function-errors': {
    number: 8,
    description: 'A function of this account throws or times out.',
    metrics: [allFunctionsMetric('Errors')],
    statistic: 'Sum',
    above: 0,
  },
  'lambda-throttles': throttleAlarm,
  'events-age': Object.fromEntries(queueAlarms)['events-age'],
}

const fullAlarms = { ...metricAlarms, ...Object.fromEntries([...timeoutAlarms, ...queueAlarms]) }

export const topic = monitoring === 'off' ? undefined : createAlarmTopic()

if (topic) {
  const { alarmEmail: endpoint } = options
  if (endpoint) new aws.sns.TopicSubscription('AlarmsByEmail', { topic: topic.arn, protocol: 'email', endpoint })
  for (const [name, spec] of Object.entries(monitoring === 'full' ? fullAlarms : basicAlarms))
    createAlarm(name, spec, topic)
}
