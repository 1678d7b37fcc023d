import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { type Task, tasks } from '@platform/contract/task'
import { type QueuePoller, startQueuePoller } from '@platform/local/events/poller'
import { type SqsBatchResponse, type SqsEvent } from '@platform/local/events/sqs-event'
import { seededRandom } from '../../packages/local/src/emulators/dynamodb/random.ts'
import { handler as batches } from '../../functions/queue/batches.ts'
import { handler as events } from '../../functions/queue/events.ts'
import { handler as jobs } from '../../functions/queue/jobs.ts'

// A process that consumes queues with the platform's functions, as many messages at once as the deployment hands them. Some
// messages come again although they were handled, seconds later.

const consumers = { jobs, batches, events }
type Name = keyof typeof consumers

const againRate = 0.05
const latestSeconds = 4
/** What failed comes again so soon; nothing takes that long. */
const visibilityTimeoutSeconds = 20

/** What a consumer has seen of its queues. */
export interface Handled {
  jobs: number
  batches: number
  events: number
  /** Messages that a function has refused; they come again. */
  failed: number
  /** Messages that were sent once more after a success. */
  again: number
  /** Messages that the queue has handed to this process although it had handled them. */
  twice: number
}

const handled: Handled = { jobs: 0, batches: 0, events: 0, failed: 0, again: 0, twice: 0 }
const random = seededRandom(Number(process.argv[2]))
const known = new Set<string>()
const client = new SQSClient()

const urlOf = (name: Name): string => process.env[`PLAT_QUEUE_${name.toUpperCase()}`] ?? ''

async function invoke(name: Name, event: SqsEvent): Promise<SqsBatchResponse> {
  const result = await consumers[name](event)
  if (!('batchItemFailures' in result)) throw new Error('It was no message.')
  const failed = new Set(result.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier))
  handled[name] += event.Records.length
  handled.failed += failed.size
  for (const { messageId } of event.Records) if (known.has(messageId)) handled.twice++
  const done = event.Records.filter(({ messageId }) => !failed.has(messageId))
  for (const { messageId } of done) known.add(messageId)
  await Promise.all(done.filter(() => random() < againRate).map(({ body }) => sendAgain(name, body)))
  return result
}

async function sendAgain(name: Name, MessageBody: string): Promise<void> {
  handled.again++
  const DelaySeconds = Math.floor(random() * latestSeconds)
  await client.send(new SendMessageCommand({ QueueUrl: urlOf(name), MessageBody, DelaySeconds }))
}

function pumpOf(name: Name): QueuePoller {
  const { trigger }: Task = tasks[`queue/${name}`]
  if (typeof trigger !== 'object' || !('queue' in trigger)) throw new Error(`No function consumes ${name}.`)
  return startQueuePoller({
    client,
    queueUrl: urlOf(name),
    queueArn: `arn:aws:sqs:eu-central-1:000000000000:${name}`,
    batchSize: trigger.batchSize,
    maximumConcurrency: trigger.maximumConcurrency,
    visibilityTimeoutSeconds,
    invoke: (event) => invoke(name, event),
    log: () => undefined,
  })
}

const pumps = (['jobs', 'batches', 'events'] as const).map(pumpOf)
// Asked how far it is, or told to stop: both are answered with what it has handled.
process.on('message', (word) => {
  const stopped = word === 'stop' ? Promise.all(pumps.map((pump) => pump.stop())) : undefined
  void Promise.resolve(stopped).then(() => process.send?.(handled))
})
process.on('disconnect', () => process.exit())
