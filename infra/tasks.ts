import { type Task, tasks } from '../packages/contract/src/task.ts'
import { platformFunction, versions } from './functions.ts'
import { loops } from './loops.ts'
import { queues } from './queues.ts'
import { prefix } from './stage.ts'

/** What runs without a request: consumers of queues, clocks, and what a deployment begins. */

type Target = ReturnType<typeof platformFunction>

/** A message that fails comes again alone; one that fails five times goes to the dead-letter queue. */
function consume({ id, alias }: Target, trigger: { queue: string; batchSize: number; maximumConcurrency: number }) {
  const { queue, deadLetter } = queues[trigger.queue.replace(/-dead-letter$/, '')]
  new aws.lambda.EventSourceMapping(`${id}Messages`, {
    eventSourceArn: (trigger.queue.endsWith('-dead-letter') ? deadLetter : queue).arn,
    functionName: alias.arn,
    batchSize: trigger.batchSize,
    functionResponseTypes: ['ReportBatchItemFailures'],
    // Lambda knows no fewer than two. What wants one at a time wants it for the sake of the store, not of its correctness.
    scalingConfig: { maximumConcurrency: Math.max(2, trigger.maximumConcurrency) },
  })
}

/**
 * Functions that send messages which lead back to them, on purpose: a batch goes on with the next message, a webhook with what
 * is due then. Lambda would take the sixteenth of a row for an endless loop, and drop it.
 */
function allowLoop({ id, function: made }: Target) {
  new aws.lambda.FunctionRecursionConfig(`${id}Loop`, { functionName: made.name, recursiveLoop: 'Allow' })
}

/** One role for all clocks of this account and stage, and nobody else's: it may call what they begin. */
const clock = new aws.iam.Role('ClockRole', {
  name: `${prefix}-clock`,
  assumeRolePolicy: $jsonStringify({
    Version: '2012-10-17',
    Statement: [
      {
        Effect: 'Allow',
        Principal: { Service: 'scheduler.amazonaws.com' },
        Action: 'sts:AssumeRole',
        Condition: { StringEquals: { 'aws:SourceAccount': aws.getCallerIdentityOutput().accountId } },
      },
    ],
  }),
})

function schedule({ id, alias, function: made }: Target, everySeconds: number, name: string) {
  const minutes = everySeconds / 60
  new aws.iam.RolePolicy(`${id}Clock`, {
    role: clock.name,
    policy: aws.iam.getPolicyDocumentOutput({
      statements: [{ actions: ['lambda:InvokeFunction'], resources: [alias.arn] }],
    }).json,
  })
  // A run that is missed, or fails, is made up for by the next one; Lambda would begin it twice more.
  new aws.lambda.FunctionEventInvokeConfig(`${id}Retries`, {
    functionName: made.name,
    qualifier: alias.name,
    maximumRetryAttempts: 0,
    maximumEventAgeInSeconds: Math.max(60, everySeconds),
  })
  new aws.scheduler.Schedule(`${id}Schedule`, {
    name: `${prefix}-${name.replaceAll('/', '-')}`,
    scheduleExpression: `rate(${minutes} minute${minutes === 1 ? '' : 's'})`,
    flexibleTimeWindow: { mode: 'OFF' },
    target: { arn: alias.arn, roleArn: clock.arn, retryPolicy: { maximumRetryAttempts: 0 } },
  })
}

/**
 * The start of the platform (D10): the last thing of each deployment that changes a function, when all of them are there. One
 * that fails fails the deployment, and is not kept: the next deployment begins it again.
 */
function begin({ id, alias, function: made }: Target) {
  new aws.lambda.Invocation(`${id}Start`, {
    functionName: made.name,
    qualifier: alias.name,
    input: '{}',
    triggers: versions,
  })
}

const starts: Target[] = []
for (const [name, { trigger, timeoutSeconds, uses }] of Object.entries<Task>(tasks)) {
  const consumes = typeof trigger === 'object' && 'queue' in trigger ? trigger.queue : undefined
  const target = platformFunction(name, { uses, timeoutSeconds, ...(consumes && { consumes }) })
  if (trigger === 'deployment') starts.push(target)
  else if ('queue' in trigger) {
    consume(target, trigger)
    if (loops(name)) allowLoop(target)
  } else schedule(target, trigger.everySeconds, name)
}
for (const each of starts) begin(each)
