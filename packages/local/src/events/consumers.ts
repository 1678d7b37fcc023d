import { type Task, tasks } from '@platform/contract/task'
import * as z from 'zod'
import { callOver } from '../emulators/port.ts'
import type { RunningEmulators } from '../emulators/start.ts'
import { visibilityTimeoutSeconds } from '../function-limits.ts'
import type { FunctionPool } from '../functions/pool.ts'
import type { Log } from '../log.ts'
import type { QueueName, Queues } from '../provision.ts'
import { startQueuePoller } from './poller.ts'

export interface ConsumerOptions {
  emulators: RunningEmulators
  queues: Queues
  /** Names of all functions: `queue/<name>` consumes the queue of that name, including dead-letter queues. */
  functionNames: readonly string[]
  invoke: FunctionPool['invoke']
  log: Log
}

export interface Consumers {
  /** Receives no more messages; resolves when running batches are handled. */
  stop: () => Promise<void>
}

const tasksByName: Readonly<Record<string, Task>> = tasks

function batchingOf(name: QueueName): { batchSize: number; maximumConcurrency: number } {
  const { trigger } = tasksByName[`queue/${name}`] ?? {}
  if (typeof trigger !== 'object' || !('queue' in trigger)) throw new Error(`No task consumes the queue ${name}.`)
  return trigger
}

/** As on Lambda, any other response fails the whole batch. */
const BatchResponse = z
  .object({ batchItemFailures: z.array(z.object({ itemIdentifier: z.string() })).default([]) })
  .nullish()
  .transform((response) => response ?? null)

export function startConsumers({ emulators, queues, functionNames, invoke, log }: ConsumerOptions): Consumers {
  const call = callOver(emulators.connect(), 'none')
  const consumedQueues = [...queues].filter(([name]) => functionNames.includes(`queue/${name}`))
  const pollers = consumedQueues.map(([name, queue]) =>
    startQueuePoller({
      call,
      queueUrl: queue.url,
      queueArn: queue.arn,
      ...batchingOf(name),
      visibilityTimeoutSeconds: visibilityTimeoutSeconds(name),
      invoke: async (event) => BatchResponse.parse(await invoke(`queue/${name}`, event)),
      log,
    }),
  )
  return {
    stop: async () => {
      await Promise.all(pollers.map((poller) => poller.stop()))
    },
  }
}
