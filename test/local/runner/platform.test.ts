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
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { modulePaths } from '@platform/contract/passage'
import { parseConfig } from '@platform/core/lib/settings/schema'
import { clientSettings, newAccessKeyId } from '@platform/local/emulators/http/environment'
import { readRuntimeFile } from '@platform/local/runtime-file'
import * as z from 'zod'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Gate, startGate } from './gate.ts'
import { platformIn, queueClient, temporaryFolder } from './support.ts'

const disposables = new AsyncDisposableStack()
let gate: Gate
let dataDir: string
let platform: Awaited<ReturnType<typeof platformIn>>

const telling = (name: string, expression: string) =>
  `export const handler = async (event) => { ${gate.pass(name, expression)}; return {} }`

beforeAll(async () => {
  const folder = disposables.use(await temporaryFolder())
  gate = disposables.use(await startGate())
  gate.open()
  dataDir = join(folder.path, 'data')
  const sources = {
    'schedule/heartbeat': `export const handler = async () => {
      const { status } = await fetch(process.env.PLAT_API_URL + '/health/live')
      ${gate.pass('heartbeat', 'status')}
    }`,
    [modulePaths.function]: `export const handler = async () => ({ statusCode: 200, body: JSON.stringify({ by: 'modules' }) })`,
    bootstrap: telling('bootstrap', 'process.env'),
    'queue/jobs': telling('batch', 'event'),
    'schedule/sweep': telling('sweep', 'event'),
    relay: `export const handler = async () => {
      ${gate.pass('beat')}
      const headers = { 'grip-hold': 'response', 'grip-channel': 'clus_1', 'grip-timeout': '600' }
      return { statusCode: 200, headers, body: 'released' }
    }`,
    jobs: `export const handler = async () => {
      await fetch(process.env.PLAT_RELAY_NOTIFY_URL, { method: 'POST', body: JSON.stringify({ channel: 'clus_1' }) })
      return { statusCode: 202 }
    }`,
    sites: `export const handler = () => {
      setImmediate(() => { throw new Error('crash') })
      return new Promise(() => {})
    }`,
  }
  const environment = {
    PLAT_SWEEP_INTERVAL_SECONDS: '1',
    PLAT_MODULE_SOURCES: 'registry.example.com/modules/*',
    PLAT_REGISTRY_ALLOW: '10.0.0.1:5000',
  }
  platform = disposables.use(await platformIn(folder.path, sources, environment))
})
afterAll(() => disposables.disposeAsync())

test('a start is one API start, in the environment that functions need and nothing else', async () => {
  const environments = z.array(z.record(z.string(), z.string())).parse(await gate.arrived('bootstrap'))
  expect(environments).toHaveLength(1)
  expect(parseConfig(environments[0] ?? {})).toMatchObject({
    PLAT_TABLE: 'platform',
    PLAT_API_URL: platform.url,
    PLAT_RELAY_NOTIFY_URL: platform.wakeUrl,
    PLAT_ADMIN_TOKEN_COMMAND: 'npm run -s admin-token',
    PLAT_UPDATE_SUPERVISOR_URL: platform.updateHost.url,
    PLAT_UPDATE_SUPERVISOR_TOKEN: platform.updateHost.token,
    PLAT_UPDATE_BAKE_SECONDS: 5,
    PLAT_QUEUE_JOBS: expect.stringMatching(/\/jobs$/),
  })
  expect(environments[0]).toMatchObject({
    AWS_ENDPOINT_URL_DYNAMODB: platform.standIns.dynamoDbUrl,
    AWS_ENDPOINT_URL_SQS: platform.standIns.sqsUrl,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: platform.standIns.secretsUrl,
    AWS_CONFIG_FILE: '/dev/null',
  })
  expect(Object.keys(environments[0] ?? {}).filter((name) => !/^(PLAT|AWS)_/.test(name))).toEqual([])
})

test('functions look for releases in the platform’s own registry, and trust its own key for that place alone', async () => {
  const [environment] = z.array(z.record(z.string(), z.string())).parse(await gate.arrived('bootstrap'))
  const { registry } = await readRuntimeFile(dataDir)
  const config = parseConfig(environment ?? {})
  expect(config.PLAT_RELEASE_SOURCE).toBe(`${registry.host}/platform/releases`)
  expect(config.PLAT_RELEASE_KEYS).toEqual([
    { name: 'this platform', pem: expect.any(String), repositories: [config.PLAT_RELEASE_SOURCE] },
  ])
  expect(config.PLAT_MODULE_KEYS.map(({ pem }) => pem)).not.toContain(config.PLAT_RELEASE_KEYS[0]?.pem)
})

test('functions know where modules come from, whose signatures count and what is reached for them', async () => {
  const [environment] = z.array(z.record(z.string(), z.string())).parse(await gate.arrived('bootstrap'))
  const { registry } = await readRuntimeFile(dataDir)
  const config = parseConfig(environment ?? {})
  expect(config).toMatchObject({
    PLAT_MODULE_SOURCES: `${registry.host}/*,registry.example.com/modules/*`,
    PLAT_REGISTRY_ALLOW: `${registry.host},10.0.0.1:5000`,
    PLAT_QUEUE_UPDATES: expect.stringMatching(/\/updates$/),
    PLAT_QUEUE_MODULES: expect.stringMatching(/\/modules$/),
  })
  expect(config.PLAT_MODULE_KEYS).toMatchObject([{ name: 'this platform', repositories: ['modules/hello'] }])
})

test('a path that no route has goes to the function of modules, and any other to the default', async () => {
  const paths = ['/api/hello', '/modules/hello/a%20b?c', '/api/v1/unknown', '/unknown', '/modules']
  const answers = await Promise.all(paths.map(async (path) => (await fetch(platform.url + path)).json()))
  expect(answers).toMatchObject([{ by: 'modules' }, { by: 'modules' }, { by: 'modules' }, {}, {}])
  expect(answers.slice(3).filter((answer) => 'by' in (answer as object))).toEqual([])
})

test('modules are looked after as soon as requests are answered', async () => {
  const [status] = await gate.arrived('heartbeat')
  expect(status).toBe(200)
})

test('a request reaches the function of its route', async () => {
  const response = await fetch(`${platform.url}/api/v1/clusters/a%20b`)
  expect(await response.json()).toEqual({ path: '/api/v1/clusters/a b' })
})

test.each([
  [
    'store',
    async (key: string) =>
      new DynamoDBClient(clientSettings(platform.standIns.dynamoDbUrl, key)).send(new ListTablesCommand({})),
  ],
  [
    'queues',
    async (key: string) => new SQSClient(clientSettings(platform.standIns.sqsUrl, key)).send(new ListQueuesCommand({})),
  ],
  [
    'secrets',
    async (key: string) =>
      new SecretsManagerClient(clientSettings(platform.standIns.secretsUrl, key)).send(new ListSecretsCommand({})),
  ],
])('a program that does not know the key of this run reaches nothing of the %s', async (_name, listWith) => {
  await expect(listWith(newAccessKeyId())).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
  await expect(listWith(platform.standIns.accessKeyId)).resolves.toBeDefined()
})

test('the table is the one of the deployment, and expires its items', async () => {
  const client = new DynamoDBClient(clientSettings(platform.standIns.dynamoDbUrl, platform.standIns.accessKeyId))
  const { Table } = await client.send(new DescribeTableCommand({ TableName: 'platform' }))
  const indexes = Table?.GlobalSecondaryIndexes?.map(({ IndexName }) => IndexName)
  expect(indexes?.toSorted()).toEqual(['due', 'gsi1', 'gsi2', 'gsi3'])
  const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName: 'platform' }))
  expect(TimeToLiveDescription).toEqual({ AttributeName: 'ttl', TimeToLiveStatus: 'ENABLED' })
  client.destroy()
})

test.for([
  ['jobs', '180'],
  ['batches', '180'],
  ['events', '180'],
  ['webhooks', '180'],
  ['modules', '180'],
  ['updates', '1800'],
] as const)(
  'the queue %s gives a message five tries before its dead-letter queue gets it',
  async ([name, visibilitySeconds]) => {
    const client = queueClient(platform)
    const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: name }))
    const { Attributes } = await client.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }))
    expect(Attributes?.['VisibilityTimeout']).toBe(visibilitySeconds)
    expect(JSON.parse(Attributes?.['RedrivePolicy'] ?? '')).toEqual({
      deadLetterTargetArn: expect.stringMatching(`:${name}-dead-letter$`),
      maxReceiveCount: 5,
    })
    client.destroy()
  },
)

test('a message reaches the function of its queue', async () => {
  const client = queueClient(platform)
  const { QueueUrl } = await client.send(new GetQueueUrlCommand({ QueueName: 'jobs' }))
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: 'the message' }))
  expect(await gate.arrived('batch')).toMatchObject([{ Records: [{ body: 'the message', eventSource: 'aws:sqs' }] }])
  client.destroy()
})

test('the sweep runs again and again', async () => {
  expect(await gate.arrived('sweep', 2)).toContainEqual(expect.objectContaining({ source: 'aws.events' }))
})

test('a function that rings releases the answer that another one had held', async () => {
  const beat = fetch(`${platform.url}/api/v1/relay/heartbeat`, { method: 'POST' })
  await gate.arrived('beat')
  await fetch(`${platform.url}/api/v1/jobs`, { method: 'POST' })
  expect(await (await beat).text()).toBe('released')
})

test('a crashing function costs its own requests, not the platform', async () => {
  const crashed = await fetch(`${platform.url}/api/v1/sites`)
  expect(crashed.status).toBe(500)
  expect(await crashed.json()).toMatchObject({ error: 'internal_error', traceId: crashed.headers.get('x-trace-id') })
  const answers = await Promise.all([1, 2, 3, 4].map(() => fetch(`${platform.url}/health/live`)))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
})
