import { type Task, tasks } from '../packages/contract/src/task.ts'
import { platformFunction } from './functions.ts'
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
    scalingConfig: { maximumConcurrency: Math.max(2, trigger.maximumConcurrency) },
  })
}

/** One role for all clocks: it may call what they begin. */
const clock = new aws.iam.Role('ClockRole', {
  name: `${prefix}-clock`,
  assumeRolePolicy: aws.iam.assumeRolePolicyForPrincipal({ Service: 'scheduler.amazonaws.com' }),
})

function schedule({ id, alias }: Target, everySeconds: number, name: string) {
  const minutes = everySeconds / 60
  new aws.iam.RolePolicy(`${id}Clock`, {
    role: clock.name,
    policy: aws.iam.getPolicyDocumentOutput({
      statements: [{ actions: ['lambda:InvokeFunction'], resources: [alias.arn] }],
    }).json,
  })
  new aws.scheduler.Schedule(`${id}Schedule`, {
    name: `${prefix}-${name.replaceAll('/', '-')}`,
    scheduleExpression: `rate(${minutes} minute${minutes === 1 ? '' : 's'})`,
    flexibleTimeWindow: { mode: 'OFF' },
    // A run that is missed is made up for by the next one.
    target: { arn: alias.arn, roleArn: clock.arn, retryPolicy: { maximumRetryAttempts: 0 } },
  })
}

/** The start of the platform (D10): run by each deployment that changes something. One that fails fails the deployment. */
function begin({ id, alias, function: made }: Target) {
  new aws.lambda.Invocation(`${id}Start`, {
    functionName: made.name,
    qualifier: alias.name,
    input: '{}',
    triggers: { version: made.nodes.function.version },
  })
}

for (const [name, { trigger, timeoutSeconds, uses }] of Object.entries<Task>(tasks)) {
  const consumes = typeof trigger === 'object' && 'queue' in trigger ? trigger.queue : undefined
  const target = platformFunction(name, { uses, timeoutSeconds, ...(consumes && { consumes }) })
  if (trigger === 'deployment') begin(target)
  else if ('queue' in trigger) consume(target, trigger)
  else schedule(target, trigger.everySeconds, name)
}
