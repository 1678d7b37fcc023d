import { once } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import * as z from 'zod'
import { newAccessKeyId, type EmulatorAddresses } from './http/environment.ts'
import { compileCache } from '../compile-cache.ts'

/** `EmulatorsData` is passed to the thread of the emulators, and `EmulatorUrls` is the first message of the thread. */
export const EmulatorsData = z.object({
  dataDir: z.string().optional(),
  accessKeyId: z.string(),
  hooks: z.url().optional(),
})
export const EmulatorUrls = z.object({ dynamoDbUrl: z.string(), sqsUrl: z.string(), secretsUrl: z.string() })

/** DynamoDB, SQS and Secrets Manager run on their own thread, so that a busy store does not block the gateway. */
export interface RunningEmulators extends EmulatorAddresses {
  /** Returns a port for `callOver`, for one thread. */
  connect: () => MessagePort
  close: () => Promise<void>
}

/** Limits the heap, so that V8 collects garbage early, as for functions. The heap also holds the waiting messages. */
const resourceLimits = { maxOldGenerationSizeMb: 1024 }

/**
 * Selects free loopback ports. Without `dataDir`, the data is in memory only. Calls `onDeath` if the thread ends before
 * `close`. `hooks` is the URL of a module that exports `EmulatorHooks`.
 */
export async function startEmulators(
  dataDir: string | undefined,
  onDeath: (error: Error) => void,
  hooks?: string,
): Promise<RunningEmulators> {
  const workerData: z.infer<typeof EmulatorsData> = { dataDir, accessKeyId: newAccessKeyId(), hooks }
  const options = { name: 'emulators', env: compileCache, workerData, resourceLimits }
  const worker = new Worker(new URL('thread.ts', import.meta.url), options)
  const [message] = await once(worker, 'message')

  let threadError = new Error('The thread of the store, the queues and the secrets ended.')
  worker.on('error', (error: Error) => {
    threadError = error
  })
  let hasEnded = false
  const exit = new Promise<void>((resolve) => {
    worker.once('exit', () => {
      hasEnded = true
      resolve()
    })
  })
  const reportDeath = () => onDeath(threadError)
  worker.on('exit', reportDeath)
  return {
    ...EmulatorUrls.parse(message),
    accessKeyId: workerData.accessKeyId,
    connect: () => {
      const { port1, port2 } = new MessageChannel()
      if (hasEnded) port1.close()
      else worker.postMessage(port1, [port1])
      return port2
    },
    close: async () => {
      worker.off('exit', reportDeath)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker is not a window
      worker.postMessage('close')
      await exit
    },
  }
}
