/** The thread of the emulators: reports their addresses, and closes them on request. */
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

const { dataDir, accessKeyId, hooks: module } = EmulatorsData.parse(workerData)
const port = parentPort
if (port === null) throw new Error('This file runs as a worker thread only.')

const hooks: EmulatorHooks = module === undefined ? {} : await import(module)
const dynamoDb = await startDynamoDb({ dataDir: join(dataDir, 'dynamodb'), accessKeyId, hooks: hooks.dynamoDb })
const sqs = await startSqs({ dataDir: join(dataDir, 'sqs'), accessKeyId, hooks: hooks.sqs })
const secrets = await startSecretsManager({ dataDir: join(dataDir, 'secrets'), accessKeyId })

const urls: z.infer<typeof EmulatorUrls> = { dynamoDbUrl: dynamoDb.url, sqsUrl: sqs.url, secretsUrl: secrets.url }
port.postMessage(urls)
// A killed thread does not write its compile cache.
flushCompileCache()
await once(port, 'message')
await Promise.all([dynamoDb.close(), sqs.close(), secrets.close()])
