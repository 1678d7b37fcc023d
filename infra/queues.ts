import { deadLetterRetentionSeconds, workQueues } from '../packages/contract/src/task.ts'
import { prefix } from './stage.ts'

/**
 * Creates a queue and its dead-letter queue. AWS recommends a visibility timeout of six times the timeout of the
 * consumer.
 */
function createQueue(name: string, timeoutSeconds: number) {
  const id = `${name[0].toUpperCase()}${name.slice(1)}`
  const visibilityTimeout = `${timeoutSeconds * 6} seconds` as const
  const deadLetter = new sst.aws.Queue(`${id}DeadLetter`, {
    visibilityTimeout,
    transform: {
      queue: { name: `${prefix}-${name}-dead-letter`, messageRetentionSeconds: deadLetterRetentionSeconds },
    },
  })
  const queue = new sst.aws.Queue(id, {
    visibilityTimeout,
    dlq: { queue: deadLetter.arn, retry: 5 },
    transform: { queue: { name: `${prefix}-${name}` } },
  })
  return { queue, deadLetter }
}

export const queues = Object.fromEntries(
  workQueues.map(({ name, timeoutSeconds }) => [name, createQueue(name, timeoutSeconds)] as const),
)
