/** Entry point of the emulators' thread: reports the addresses, serves ports, and closes the emulators on request. */
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type * as z from 'zod'
import { startDynamoDb } from './dynamodb/server.ts'
import { startSecretsManager } from './secrets/server.ts'
import { startSqs } from './sqs/server.ts'
import type { EmulatorHooks } from './hooks.ts'
import { EmulatorsData, type EmulatorUrls } from './start.ts'
import { type Call, type CallResponse, serveCalls } from './port.ts'

const { dataDir, accessKeyId, hooks: hooksUrl } = EmulatorsData.parse(workerData)
const port = parentPort
if (port === null) throw new Error('This file runs as a worker thread only.')

const dataIn = (folder: string) => (dataDir === undefined ? {} : { dataDir: join(dataDir, folder) })
const hooks: EmulatorHooks = hooksUrl === undefined ? {} : await import(hooksUrl)
const dynamoDb = await startDynamoDb({ ...dataIn('dynamodb'), accessKeyId, hooks: hooks.dynamoDb })
const sqs = await startSqs({ ...dataIn('sqs'), accessKeyId, hooks: hooks.sqs })
const secrets = await startSecretsManager({ ...dataIn('secrets'), accessKeyId })

const callsByService: Record<string, Call> = {
  DynamoDB_20120810: dynamoDb.call,
  AmazonSQS: sqs.call,
  secretsmanager: secrets.call,
}
const urls: z.infer<typeof EmulatorUrls> = { dynamoDbUrl: dynamoDb.url, sqsUrl: sqs.url, secretsUrl: secrets.url }
port.postMessage(urls)
// Node writes the cache only at a regular exit, and this thread may be killed.
flushCompileCache()
await closeRequest(port)
await Promise.all([dynamoDb.close(), sqs.close(), secrets.close()])

async function call(target: string, body: string, signal?: AbortSignal): Promise<CallResponse> {
  const service = callsByService[target.split('.')[0] ?? '']
  if (service === undefined) throw new Error(`No service has the target ${target}.`)
  return service(target, body, signal)
}

/** Serves each port that arrives. Resolves when the platform asks to close. */
function closeRequest(platform: MessagePort): Promise<void> {
  return new Promise((resolve) => {
    platform.on('message', (message: MessagePort | 'close') => {
      if (message !== 'close') return serveCalls(message, call)
      platform.unref()
      resolve()
    })
  })
}
