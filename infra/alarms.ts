import { alarm, alarmTopic, sumOf, type AlarmSpec } from './alarm.ts'
import { hasConsumer, schedules, consumers, tableThrottles } from './metrics.ts'
import { allFunctionsMetric, functionMetric, gatewayMetric, platformMetric, queueMetric } from './metrics.ts'
import { options } from './options.ts'
import { queues } from './queues.ts'
import { hasAlarms } from './stage.ts'

/** What wakes somebody. The numbers are those of docs/operations.md#alarms, which says what to do. */

const errorsOfConsumers = consumers.map((name) => functionMetric('Errors', name))
const errorsOfClocks = ['bootstrap', ...schedules.map(({ name }) => name)].map((name) => functionMetric('Errors', name))
/** A changed password wants the old one first. */
const signIns = [platformMetric('SignInFailures', 'auth'), platformMetric('SignInFailures', 'users')]

const ofWork: Record<string, AlarmSpec> = {
  'requests-fail': {
    number: 2,
    says: 'More than 1 % of the requests fail, and five at least.',
    metrics: [gatewayMetric('5xx'), gatewayMetric('Count')],
    formula: 'IF(m0 >= 5, m0 / m1, 0)',
    statistic: 'Sum',
    above: 0.01,
  },
  'slow-answers': {
    number: 9,
    says: 'One answer of twenty takes longer than three seconds.',
    metrics: [gatewayMetric('Latency')],
    statistic: 'p95',
    above: 3000,
    times: 3,
  },
  'no-sweep': {
    number: 3,
    says: 'No sweep has ended well for five minutes.',
    // Only what has ended well has a duration.
    metrics: [platformMetric('RunDuration', 'schedule/sweep')],
    statistic: 'SampleCount',
    below: 1,
    missing: 'breaching',
  },
  'sweep-late': {
    number: 4,
    says: 'Sweeps find what was due three minutes before.',
    metrics: [platformMetric('SweepLateness', 'schedule/sweep')],
    statistic: 'Maximum',
    above: 180,
    times: 3,
  },
  'sweep-failures': {
    number: 4,
    says: 'A sweep cannot judge something: its log names it.',
    metrics: [platformMetric('SweepFailures', 'schedule/sweep')],
    statistic: 'Sum',
    above: 0,
  },
  'books-lag': {
    number: 7,
    says: 'What happens enters the books five minutes later.',
    metrics: [platformMetric('BooksLag', 'queue/events')],
    statistic: 'Maximum',
    above: 300,
  },
  'records-set-aside': {
    number: 7,
    says: 'A record cannot be entered into one of the books.',
    metrics: [platformMetric('RecordsSetAside', 'queue/events')],
    statistic: 'Sum',
    above: 0,
  },
  'sign-in-failures': {
    number: 10,
    says: 'More than twenty sign-ins a minute fail.',
    metrics: signIns,
    formula: sumOf(signIns),
    statistic: 'Sum',
    above: 100,
  },
  'webhooks-fail': {
    number: 11,
    says: 'A hundred deliveries of webhooks have failed in a quarter of an hour.',
    metrics: [platformMetric('DeliveryFailures', 'queue/webhooks')],
    statistic: 'Sum',
    above: 100,
    minutes: 15,
  },
  'consumers-fail': {
    number: 8,
    says: 'Consumers of queues break off: they throw, or run out of time.',
    metrics: errorsOfConsumers,
    formula: sumOf(errorsOfConsumers),
    statistic: 'Sum',
    above: 0,
  },
  'schedules-fail': {
    number: 8,
    says: 'Scheduled functions break off: they throw, or run out of time.',
    metrics: errorsOfClocks,
    formula: sumOf(errorsOfClocks),
    statistic: 'Sum',
    above: 0,
  },
  throttles: {
    number: 13,
    says: 'Functions are refused: the account has no room for more of them at once.',
    metrics: [allFunctionsMetric('Throttles')],
    statistic: 'Sum',
    above: 10,
  },
  'table-throttles': {
    number: 13,
    says: 'The table refuses calls, or writes for an index: more is asked of it, or of one partition, than it gives.',
    metrics: tableThrottles,
    formula: sumOf(tableThrottles),
    statistic: 'Sum',
    above: 10,
  },
}

const ofTimeLimits = schedules.map(({ name, timeoutSeconds }): [string, AlarmSpec] => [
  `${name.replace('schedule/', '')}-near-limit`,
  {
    number: 8,
    says: `${name} takes more than 80 % of the ${timeoutSeconds} seconds that it has.`,
    metrics: [functionMetric('Duration', name)],
    statistic: 'Maximum',
    above: 800 * timeoutSeconds,
    times: 2,
  },
])

/**
 * Queue → seconds that a message may wait, where 300 are too few: an update takes its time, and to webhooks and modules that
 * want to be left alone messages are sent with a delay, of 900 at most.
 */
const waits: Record<string, number> = { updates: 1800, webhooks: 1200, modules: 1200 }

const ofQueues = Object.entries(queues).flatMap(([name, { queue, deadLetter }]): [string, AlarmSpec][] => {
  const above = waits[name] ?? 300
  const age: AlarmSpec = {
    number: 5,
    says: `A message of the queue ${name} has waited for ${above} seconds.`,
    metrics: [queueMetric('ApproximateAgeOfOldestMessage', queue)],
    statistic: 'Maximum',
    above,
  }
  // What SQS itself moves to a queue counts as sent by nobody. Where a function takes letters at once, that is seen.
  const letters: AlarmSpec = {
    number: 6,
    says: `A message of the queue ${name} has failed five times.`,
    metrics: [
      queueMetric(hasConsumer(name) ? 'NumberOfMessagesReceived' : 'ApproximateNumberOfMessagesVisible', deadLetter),
    ],
    statistic: hasConsumer(name) ? 'Sum' : 'Maximum',
    above: 0,
  }
  return [
    [`${name}-age`, age],
    [`${name}-dead-letters`, letters],
  ]
})

/** Tells whoever subscribes to it; there is none where nobody watches. */
export const topic = hasAlarms ? alarmTopic() : undefined

if (topic) {
  const { alarmEmail: endpoint } = options
  if (endpoint) new aws.sns.TopicSubscription('AlarmsByEmail', { topic: topic.arn, protocol: 'email', endpoint })
  for (const [name, watch] of [...Object.entries(ofWork), ...ofTimeLimits, ...ofQueues]) alarm(name, watch, topic)
}
