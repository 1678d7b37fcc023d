import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import * as z from 'zod'
import { newAccessKeyId, type StandIns } from './http/environment.ts'
import { compileCache } from '../compile-cache.ts'

/** What the thread of the stand-ins is told, and what it answers. */
export const EmulatorsData = z.object({ dataDir: z.string(), accessKeyId: z.string() })
export const EmulatorUrls = z.object({ dynamoDbUrl: z.string(), sqsUrl: z.string(), secretsUrl: z.string() })

/** DynamoDB, SQS and Secrets Manager on a thread of their own: a busy store does not hold up the gateway. */
export interface RunningEmulators extends StandIns {
  close: () => Promise<void>
}

/** As with functions: the heap is collected before it is many times what is in use. Messages that wait are kept on it. */
const resourceLimits = { maxOldGenerationSizeMb: 1024 }

/** Starts the stand-ins on free loopback ports; `onDeath` hears when they end unasked. */
export async function startEmulators(dataDir: string, onDeath: (error: Error) => void): Promise<RunningEmulators> {
  const workerData: z.infer<typeof EmulatorsData> = { dataDir, accessKeyId: newAccessKeyId() }
  const options = { name: 'stand-ins', env: compileCache, workerData, resourceLimits }
  const worker = new Worker(new URL('thread.ts', import.meta.url), options)
  const [message] = await once(worker, 'message')

  let death = new Error('The thread of the store, the queues and the secrets ended.')
  worker.on('error', (error: Error) => {
    death = error
  })
  const exit = once(worker, 'exit')
  const reportDeath = () => onDeath(death)
  worker.on('exit', reportDeath)
  return {
    ...EmulatorUrls.parse(message),
    accessKeyId: workerData.accessKeyId,
    close: async () => {
      worker.off('exit', reportDeath)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
      worker.postMessage('close')
      await exit
    },
  }
}
