/** Entry point of the emulators' thread: reports the addresses, and closes the emulators on request. */
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type * as z from 'zod'
import { startDynamoDb } from './dynamodb/server.ts'
import { startSecretsManager } from './secrets/server.ts'
import { startSqs } from './sqs/server.ts'
import type { EmulatorHooks } from './hooks.ts'
import { EmulatorsData, type EmulatorUrls } from './start.ts'

const { dataDir, accessKeyId, hooks: hooksUrl } = EmulatorsData.parse(workerData)
const port = parentPort
if (port === null) throw new Error('This file runs as a worker thread only.')

const hooks: EmulatorHooks = hooksUrl === undefined ? {} : await import(hooksUrl)
const dynamoDb = await startDynamoDb({ dataDir: join(dataDir, 'dynamodb'), accessKeyId, hooks: hooks.dynamoDb })
const sqs = await startSqs({ dataDir: join(dataDir, 'sqs'), accessKeyId, hooks: hooks.sqs })
const secrets = await startSecretsManager({ dataDir: join(dataDir, 'secrets'), accessKeyId })

const urls: z.infer<typeof EmulatorUrls> = { dynamoDbUrl: dynamoDb.url, sqsUrl: sqs.url, secretsUrl: secrets.url }
port.postMessage(urls)
// Node writes the cache only at a regular exit, and this thread may be killed.
flushCompileCache()
await once(port, 'message')
await Promise.all([dynamoDb.close(), sqs.close(), secrets.close()])
