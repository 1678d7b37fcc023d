/** The thread of the stand-ins: says where they listen, and closes them when it is told to. */
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type * as z from 'zod'
import { startDynamoDb } from './dynamodb/server.ts'
import { startSecretsManager } from './secrets/server.ts'
import { startSqs } from './sqs/server.ts'
import { EmulatorsData, type EmulatorUrls } from './start.ts'

const { dataDir, accessKeyId } = EmulatorsData.parse(workerData)
const port = parentPort
if (port === null) throw new Error('This file runs as a worker thread only.')

const dynamoDb = await startDynamoDb({ dataDir: join(dataDir, 'dynamodb'), accessKeyId })
const sqs = await startSqs({ dataDir: join(dataDir, 'sqs'), accessKeyId })
const secrets = await startSecretsManager({ dataDir: join(dataDir, 'secrets'), accessKeyId })

const urls: z.infer<typeof EmulatorUrls> = { dynamoDbUrl: dynamoDb.url, sqsUrl: sqs.url, secretsUrl: secrets.url }
port.postMessage(urls)
// A thread that is killed keeps nothing.
flushCompileCache()
await once(port, 'message')
await Promise.all([dynamoDb.close(), sqs.close(), secrets.close()])
