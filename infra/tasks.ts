import { type Task, tasks } from '../packages/contract/src/task.ts'
import { authorizeConnections, reportPresence } from './channel.ts'
import { createPlatformFunction, versions } from './functions.ts'
import { canLoop } from './recursion.ts'
import { queues } from './queues.ts'
import { settingsOf } from './settings.ts'
import { globalPrefix, prefix } from './stage.ts'

type Target = ReturnType<typeof createPlatformFunction>

/**
 * Connects a function to its queue. With `ReportBatchItemFailures`, only the failed messages of a batch are delivered
 * again.
 */
function connectQueue(
  { id, alias }: Target,
  trigger: { queue: string; batchSize: number; maximumConcurrency: number },
) {
  const { queue, deadLetter } = queues[trigger.queue.replace(/-dead-letter$/, '')]
  new aws.lambda.EventSourceMapping(`${id}Messages`, {
    eventSourceArn: (trigger.queue.endsWith('-dead-letter') ? deadLetter : queue).arn,
    functionName: alias.arn,
    batchSize: trigger.batchSize,
    functionResponseTypes: ['ReportBatchItemFailures'],
    // Lambda requires a limit of at least two. Two are safe, because a limit of one only reduces the load on the table.
    scalingConfig: { maximumConcurrency: Math.max(2, trigger.maximumConcurrency) },
  })
}

/**
 * For functions whose messages lead back to them on purpose, such as a batch that continues with its next message.
 * Otherwise, Lambda would stop a chain of about 16 invocations as a loop.
 */
function allowLoop({ id, function: lambda }: Target) {
  new aws.lambda.FunctionRecursionConfig(`${id}Loop`, { functionName: lambda.name, recursiveLoop: 'Allow' })
}

/** May only invoke the scheduled functions of this stage. */
const scheduleRole = new aws.iam.Role('ClockRole', {
  name: $interpolate`${globalPrefix}-clock`,
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

function schedule({ id, alias, function: lambda }: Target, everySeconds: number, name: string) {
  const minutes = everySeconds / 60
  new aws.iam.RolePolicy(`${id}Clock`, {
    role: scheduleRole.name,
    policy: aws.iam.getPolicyDocumentOutput({
      statements: [{ actions: ['lambda:InvokeFunction'], resources: [alias.arn] }],
    }).json,
  })
  // The next run makes up for a failed one, so Lambda's two default retries are disabled.
  new aws.lambda.FunctionEventInvokeConfig(`${id}Retries`, {
    functionName: lambda.name,
    qualifier: alias.name,
    maximumRetryAttempts: 0,
    maximumEventAgeInSeconds: Math.max(60, everySeconds),
  })
  new aws.scheduler.Schedule(`${id}Schedule`, {
    name: `${prefix}-${name.replaceAll('/', '-')}`,
    scheduleExpression: `rate(${minutes} minute${minutes === 1 ? '' : 's'})`,
    flexibleTimeWindow: { mode: 'OFF' },
    target: { arn: alias.arn, roleArn: scheduleRole.arn, retryPolicy: { maximumRetryAttempts: 0 } },
  })
}

/**
 * Runs bootstrap at the end of each deployment that changes a function. A failure fails the deployment, and the next
 * deployment runs bootstrap again.
 */
function invokeBootstrap({ id, alias, function: lambda }: Target) {
  new aws.lambda.Invocation(`${id}Start`, {
    functionName: lambda.name,
    qualifier: alias.name,
    input: '{}',
    triggers: versions,
  })
}

/** Lambda polls every connected queue, which AWS charges for. Without a source of releases there are no updates. */
const hasUpdates = settingsOf(process.env)['PLAT_RELEASE_SOURCE'] !== undefined
const isConnected = (queue: string): boolean => hasUpdates || !queue.startsWith('updates')

const bootstrapTargets: Target[] = []
for (const [name, { trigger, timeoutSeconds, capabilities }] of Object.entries<Task>(tasks)) {
  const consumedQueue = typeof trigger === 'object' && 'queue' in trigger ? trigger.queue : undefined
  const target = createPlatformFunction(name, { capabilities, timeoutSeconds, ...(consumedQueue && { consumedQueue }) })
  if (trigger === 'deployment') bootstrapTargets.push(target)
  else if (trigger === 'channel-connect') authorizeConnections(target)
  else if (trigger === 'channel-presence') reportPresence(target)
  else if ('queue' in trigger) {
    if (isConnected(trigger.queue)) connectQueue(target, trigger)
    if (canLoop(name)) allowLoop(target)
  } else schedule(target, trigger.everySeconds, name)
}
for (const each of bootstrapTargets) invokeBootstrap(each)
