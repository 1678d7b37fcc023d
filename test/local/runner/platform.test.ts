import { once } from 'node:events'
import { stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import {
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  ListTablesCommand,
} from '@aws-sdk/client-dynamodb'
import { ListSecretsCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import {
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  ReceiveMessageCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { modulePaths } from '@platform/contract/passage'
import { parseConfig } from '@platform/core/lib/settings/schema'
import { clientSettings, newAccessKeyId } from '@platform/local/emulators/http/environment'
import { listenAt } from '@platform/local/listening'
import { startPlatform } from '@platform/local/platform'
import { readRuntimeFile } from '@platform/local/runtime-file'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startSqs } from '@platform/local/emulators/sqs/server'
import { parseSettings } from '@platform/local/settings'
import * as z from 'zod'
import { allow, openMqtt } from '../../support/mqtt-client.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { type Barrier, startBarrier } from '../support/barrier.ts'
import { platformIn, queueClient, settingsIn, writeFunctions } from '../support/platform.ts'

const disposables = new AsyncDisposableStack()
let barrier: Barrier
let dataDir: string

let platform: Awaited<ReturnType<typeof platformIn>>
let queues: SQSClient

const reporting = (name: string, expression: string) =>
  `export const handler = async (event) => { ${barrier.report(name, expression)}; return {} }`

const send = async (QueueName: string, MessageBody: string) => {
  const { QueueUrl } = await queues.send(new GetQueueUrlCommand({ QueueName }))
  await queues.send(new SendMessageCommand({ QueueUrl, MessageBody }))
  return QueueUrl
}

beforeAll(async () => {
  const folder = disposables.use(await temporaryFolder())
  barrier = disposables.use(await startBarrier())
  barrier.open()
  dataDir = join(folder.path, 'data')
  const sources = {
    'schedule/heartbeat': `export const handler = async () => {
      const { status } = await fetch(process.env.PLAT_API_URL + '/health/live')
      ${barrier.report('heartbeat', 'status')}
    }`,
    [modulePaths.function]: `export const handler = async () => ({ statusCode: 200, body: JSON.stringify({ by: 'modules' }) })`,
    bootstrap: reporting('bootstrap', 'process.env'),
    'queue/webhooks': reporting('batch', 'event'),
    'queue/batches-dead-letter': reporting('dead-letter', 'event'),
    'channel-authorizer': `export const handler = async () => (${JSON.stringify(allow('one', 'one/topic'))})`,
    'queue/presence': reporting('presence', 'event'),
    jobs: `export const handler = async () => {
      const headers = { authorization: 'AWS4-HMAC-SHA256 Credential=' + process.env.AWS_ACCESS_KEY_ID + '/' }
      await fetch(process.env.PLAT_CHANNEL_ENDPOINT + '/topics/one%2Ftopic', { method: 'POST', headers })
      return { statusCode: 202 }
    }`,
  }
  const environment = {
    PLAT_MODULE_SOURCES: 'registry.example.com/modules/*',
    PLAT_REGISTRY_ALLOW: '10.0.0.1:5000',
  }
  platform = disposables.use(await platformIn(folder.path, sources, environment))
  queues = queueClient(platform)
  disposables.defer(() => queues.destroy())
})

afterAll(() => disposables.disposeAsync())

test('a start invokes bootstrap once, with only the environment of the functions', async () => {
  const environments = z.array(z.record(z.string(), z.string())).parse(await barrier.waitForReports('bootstrap'))
  expect(environments).toHaveLength(1)
  const [environment = {}] = environments
  const { registry } = await readRuntimeFile(dataDir)
  const config = parseConfig(environment)
  expect(config).toMatchObject({
    PLAT_TABLE: 'platform',
    PLAT_API_URL: platform.url,
    PLAT_CHANNEL_URL: '/channel',
    PLAT_CHANNEL_ENDPOINT: platform.channelUrl,
    PLAT_ADMIN_TOKEN_COMMAND: 'npm run -s admin-token',
    PLAT_UPDATE_SUPERVISOR_URL: platform.updateSupervisor.url,
    PLAT_UPDATE_SUPERVISOR_TOKEN: platform.updateSupervisor.token,
    PLAT_UPDATE_BAKE_SECONDS: 5,
    PLAT_QUEUE_BATCHES: expect.stringMatching(/\/batches$/),
    PLAT_QUEUE_UPDATES: expect.stringMatching(/\/updates$/),
    PLAT_QUEUE_MODULES: expect.stringMatching(/\/modules$/),
    PLAT_MODULE_SOURCES: `${registry.host}/*,registry.example.com/modules/*`,
    PLAT_REGISTRY_ALLOW: `${registry.host},10.0.0.1:5000`,
    PLAT_RELEASE_SOURCE: `${registry.host}/platform/releases`,
    PLAT_MODULE_KEYS: [{ name: 'this platform', repositories: ['modules/hello'] }],
    PLAT_RELEASE_KEYS: [{ name: 'this platform', repositories: [`${registry.host}/platform/releases`] }],
  })
  expect(config.PLAT_MODULE_KEYS[0]?.pem).not.toBe(config.PLAT_RELEASE_KEYS[0]?.pem)
  expect(environment).toMatchObject({
    AWS_ENDPOINT_URL_DYNAMODB: platform.emulators.dynamoDbUrl,
    AWS_ENDPOINT_URL_SQS: platform.emulators.sqsUrl,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: platform.emulators.secretsUrl,
    AWS_CONFIG_FILE: '/dev/null',
  })
  expect(Object.keys(environment).filter((name) => !/^(PLAT|AWS)_/.test(name))).toEqual([])
})

test('routes module paths to the function of modules, and other unknown paths to the default', async () => {
  const paths = '/api/v1/clusters/a%20b /api/hello /modules/hello/a%20b?c /api/v1/unknown /unknown /modules'
  const bodies = await Promise.all(paths.split(' ').map(async (path) => (await fetch(platform.url + path)).json()))
  const moduleBody = { by: 'modules' }
  const byDefault = ['/unknown', '/modules'].map((path) => ({ path }))
  expect(bodies).toEqual([{ path: '/api/v1/clusters/a b' }, moduleBody, moduleBody, moduleBody, ...byDefault])
})

test('supervises modules as soon as requests are served', async () => {
  expect(await barrier.waitForReports('heartbeat')).toContain(200)
})

test('the emulators require the access key of this run', async () => {
  const { dynamoDbUrl, sqsUrl, secretsUrl, accessKeyId } = platform.emulators
  const calls = [
    (key: string) => new DynamoDBClient(clientSettings(dynamoDbUrl, key)).send(new ListTablesCommand({})),
    (key: string) => new SQSClient(clientSettings(sqsUrl, key)).send(new ListQueuesCommand({})),
    (key: string) => new SecretsManagerClient(clientSettings(secretsUrl, key)).send(new ListSecretsCommand({})),
  ]
  for (const call of calls) {
    await expect(call(newAccessKeyId())).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
    await expect(call(accessKeyId)).resolves.toBeDefined()
  }
})

test('creates the table of the deployment, with expiry', async () => {
  const client = new DynamoDBClient(clientSettings(platform.emulators.dynamoDbUrl, platform.emulators.accessKeyId))
  const { Table } = await client.send(new DescribeTableCommand({ TableName: 'platform' }))
  const indexes = Table?.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName)
  expect(indexes?.toSorted()).toEqual(['due', 'gsi1', 'gsi2', 'gsi3'])
  const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName: 'platform' }))
  expect(TimeToLiveDescription).toEqual({ AttributeName: 'ttl', TimeToLiveStatus: 'ENABLED' })
  client.destroy()
})

test('each queue delivers a message five times before its dead-letter queue gets it', async () => {
  for (const name of ['batches', 'events', 'webhooks', 'modules', 'installs', 'updates']) {
    const { QueueUrl } = await queues.send(new GetQueueUrlCommand({ QueueName: name }))
    const { Attributes } = await queues.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }))
    expect(Attributes?.['VisibilityTimeout'], name).toBe(['installs', 'updates'].includes(name) ? '1800' : '180')
    expect(JSON.parse(Attributes?.['RedrivePolicy'] ?? '')).toEqual({
      deadLetterTargetArn: expect.stringMatching(`:${name}-dead-letter$`),
      maxReceiveCount: 5,
    })
  }
})

test('a message is delivered to the function of its queue, also of a dead-letter queue', async () => {
  await send('webhooks', 'the message')
  const batch = [{ Records: [{ body: 'the message', eventSource: 'aws:sqs' }] }]
  expect(await barrier.waitForReports('batch')).toMatchObject(batch)

  const QueueUrl = await send('batches', 'poison')
  for (let receive = 0; receive < 6; receive++) {
    const { Messages = [] } = await queues.send(new ReceiveMessageCommand({ QueueUrl, VisibilityTimeout: 0 }))
    expect(Messages).toHaveLength(receive < 5 ? 1 : 0)
  }
  expect(await barrier.waitForReports('dead-letter')).toMatchObject([{ Records: [{ body: 'poison' }] }])
})

test('a wake-up from a function reaches the client of the channel, whose presence is reported', async () => {
  using client = await openMqtt(`${platform.url.replace('http', 'ws')}/channel`)
  expect([await client.connect('one'), await client.subscribe('one/topic')]).toEqual([0, [0]])
  await fetch(`${platform.url}/api/v1/jobs`, { method: 'POST' })
  expect(await client.next()).toMatchObject({ cmd: 'publish', topic: 'one/topic' })
  expect(await barrier.waitForReports('presence')).toMatchObject([{ eventType: 'connected', clientId: 'one' }])
})

test('a stop completes running requests and batches, and closes channels without events', async () => {
  await using folder = await temporaryFolder()
  await using stopBarrier = await startBarrier()
  const stoppedPlatform = await platformIn(folder.path, {
    jobs: `export const handler = async () => { ${stopBarrier.report('request')}; return { statusCode: 201 } }`,
    'channel-authorizer': `export const handler = async () => (${JSON.stringify(allow('one', 'one/topic'))})`,
    'queue/presence': `export const handler = async (event) => { ${stopBarrier.report('presence')} }`,
    'queue/batches': `export const handler = async () => { ${stopBarrier.report('batch')}; return {} }`,
  })
  const client = queueClient(stoppedPlatform)
  const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: 'batches' }))
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: 'x' }))
  client.destroy()
  using channel = await openMqtt(`${stoppedPlatform.url.replace('http', 'ws')}/channel`)
  await channel.connect('one')
  const request = fetch(`${stoppedPlatform.url}/api/v1/jobs`, { method: 'POST' })
  await Promise.all(['request', 'presence', 'batch'].map((name) => stopBarrier.waitForReports(name)))
  const stopResult = stoppedPlatform.stop()
  stopBarrier.open()
  expect((await request).status).toBe(201)
  await Promise.all([stopResult, channel.closed])
  await expect(readRuntimeFile(join(folder.path, 'data'))).rejects.toThrow('ENOENT')

  const sqs = await startSqs({ dataDir: join(folder.path, 'data/sqs') })
  const reader = new SQSClient(clientSettings(sqs.url, 'any'))
  const queue = await reader.send(new GetQueueUrlCommand({ QueueName: 'batches' }))
  const attributes = new GetQueueAttributesCommand({ QueueUrl: queue.QueueUrl, AttributeNames: ['All'] })
  expect((await reader.send(attributes)).Attributes).toMatchObject({
    ApproximateNumberOfMessages: '0',
    ApproximateNumberOfMessagesNotVisible: '0',
  })
  reader.destroy()
  await sqs.close()
})

test('rejects a second platform on the same data folder, and names the first', async () => {
  const settings = { ...parseSettings({ PLAT_PORT: '0' }), dataDir }
  const message = `The platform with process id ${process.pid} uses the data in ${dataDir}`
  await expect(startPlatform(settings)).rejects.toThrow(message)
  expect((await fetch(`${platform.url}/health/live`)).status).toBe(200)
})

test('a start that fails leaves nothing running, and a later start ignores a partial runtime file', async () => {
  await using folder = await temporaryFolder()
  const failingSettings = await settingsIn(folder.path, { auth: `throw new Error('broken at import')` })
  await expect(startPlatform(failingSettings)).rejects.toThrow('broken at import')
  const otherServer = createServer()
  const { port } = await listenAt(otherServer, '127.0.0.1', 0)
  const settings = {
    ...failingSettings,
    port,
    functionsDir: await writeFunctions(folder.path, { auth: 'export const handler = () => ({})' }),
  }
  await expect(startPlatform(settings)).rejects.toThrow(`127.0.0.1:${port} is in use`)
  otherServer.close()
  await once(otherServer, 'close')

  await writeFile(join(settings.dataDir, 'runtime.json'), '{"processId":')
  const startedPlatform = await startPlatform(settings, { log: () => undefined })
  expect((await stat(join(settings.dataDir, 'runtime.json'))).mode & 0o777).toBe(0o600)
  expect(await readRuntimeFile(settings.dataDir)).toMatchObject({ processId: process.pid, apiUrl: startedPlatform.url })
  await Promise.all([startedPlatform.stop(), startedPlatform.stop()])
})
