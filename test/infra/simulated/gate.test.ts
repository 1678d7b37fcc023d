import {
  BatchGetItemCommand,
  CreateTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb'
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda'
import {
  CreateSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import {
  CreateQueueCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { keySchema } from '@platform/core/db/schema'
import { clientSettings, localAccountId, localRegion } from '@platform/local/emulators/http/environment'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { startLambda } from '../../simulator/lambda/start.ts'
import { startSecretsManager } from '@platform/local/emulators/secrets/server'
import { startSqs } from '@platform/local/emulators/sqs/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type AccessDenial, type IamProxy, type Principal, startIamProxy } from '../../simulator/aws/iam-proxy.ts'
import type { Statement } from '../../simulator/graph/policy.ts'

/** The proxy in front of real emulators, with a role for each test. */

const parts = new AsyncDisposableStack()
const principals = new Map<string, Principal>()
const heard: AccessDenial[] = []
let gate: IamProxy
const own = { accessKeyId: 'owner' }
let tableUrl: string

const hear = (denial: AccessDenial) => void heard.push(denial)

beforeAll(async () => {
  const [dynamodb, sqs, secrets, lambda] = await Promise.all([
    startDynamoDb(own),
    startSqs(own),
    startSecretsManager(own),
    startLambda(own),
  ])
  for (const service of [dynamodb, sqs, secrets, lambda]) parts.defer(() => service.close())
  tableUrl = dynamodb.url
  const targets = { dynamodb: dynamodb.url, sqs: sqs.url, secrets: secrets.url, lambda: lambda.url, ecr: lambda.url }
  await Promise.all([makeTable(dynamodb.url), makeQueues(sqs.url), makeSecrets(secrets.url)])
  gate = parts.use(await startIamProxy({ targets, ...own, principalOf: (key) => principals.get(key), onDenial: hear }))
})
afterAll(() => parts.disposeAsync())

async function makeTable(url: string): Promise<void> {
  await new DynamoDBClient(clientSettings(url, 'owner')).send(
    new CreateTableCommand({
      TableName: 'one',
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: ['pk', 'sk', 'ik', 'is'].map((name) => ({ AttributeName: name, AttributeType: 'S' })),
      KeySchema: keySchema('pk', 'sk'),
      GlobalSecondaryIndexes: [
        { IndexName: 'index', KeySchema: keySchema('ik', 'is'), Projection: { ProjectionType: 'KEYS_ONLY' } },
      ],
    }),
  )
}

async function makeQueues(url: string): Promise<void> {
  const client = new SQSClient(clientSettings(url, 'owner'))
  for (const QueueName of ['jobs', 'events']) await client.send(new CreateQueueCommand({ QueueName }))
}

async function makeSecrets(url: string): Promise<void> {
  const client = new SecretsManagerClient(clientSettings(url, 'owner'))
  for (const Name of ['own', 'other']) await client.send(new CreateSecretCommand({ Name, SecretString: 'hidden' }))
}

const arn = (service: string, name: string) => `arn:aws:${service}:${localRegion}:${localAccountId}:${name}`
const table = arn('dynamodb', 'table/one')
const allow = (actions: string, ...Resource: string[]): Statement => ({
  Effect: 'Allow',
  Action: actions.split(' '),
  Resource,
})

function functionWith(...statements: Statement[]) {
  const name = `function-${principals.size}`
  principals.set(`KEY-${name}`, { name, statements })
  return { name, ...clientsOf(`KEY-${name}`) }
}

const clientsOf = (accessKeyId: string) => ({
  dynamodb: new DynamoDBClient(clientSettings(gate.urls.dynamodb, accessKeyId)),
  sqs: new SQSClient(clientSettings(gate.urls.sqs, accessKeyId)),
  secrets: new SecretsManagerClient(clientSettings(gate.urls.secrets, accessKeyId)),
  lambda: new LambdaClient(clientSettings(gate.urls.lambda, accessKeyId)),
})

const key = { pk: { S: 'a' }, sk: { S: 'b' } }
const get = () => new GetItemCommand({ TableName: 'one', Key: key })
const put = () => new PutItemCommand({ TableName: 'one', Item: key })
const queueUrl = (name: string) => `https://sqs.${localRegion}.amazonaws.com/${localAccountId}/${name}`
const denied = (name: string, demand: string) =>
  expect.objectContaining({
    name: expect.stringMatching(/^AccessDenied/),
    message: expect.stringContaining(`${name} is not authorized to perform ${demand}`),
  })

test('denies a request that no statement allows and reports it', async () => {
  const { name, dynamodb } = functionWith(allow('dynamodb:GetItem', table))
  const sharedKey = { pk: { S: 'denied' }, sk: { S: 'denied' } }
  const write = new PutItemCommand({ TableName: 'one', Item: sharedKey })
  await expect(dynamodb.send(write)).rejects.toEqual(denied(name, `dynamodb:PutItem on ${table}`))
  const { Item } = await dynamodb.send(new GetItemCommand({ TableName: 'one', Key: sharedKey }))
  expect(Item).toBeUndefined()
  const denial = { functionName: name, action: 'dynamodb:PutItem', resource: table }
  expect([gate.denials.at(-1), heard.at(-1)]).toEqual([denial, denial])
})

test('allows a request and records the statement as used', async () => {
  const statements = [allow('dynamodb:PutItem dynamodb:DeleteItem', table), allow('dynamodb:GetItem', table)]
  const { dynamodb } = functionWith(...statements)
  await dynamodb.send(put())
  expect((await dynamodb.send(get())).Item).toEqual(key)
  expect(statements.map((each) => [...(gate.used.get(each) ?? [])])).toEqual([
    ['dynamodb:PutItem'],
    ['dynamodb:GetItem'],
  ])
})

test('rejects unknown access keys and unsigned requests', async () => {
  const { dynamodb } = clientsOf('KEY-nobody')
  await expect(dynamodb.send(get())).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
  const headers = { 'x-amz-target': 'DynamoDB_20120810.GetItem', 'content-type': 'application/x-amz-json-1.0' }
  const body = JSON.stringify({ TableName: 'one', Key: key })
  const response = await fetch(gate.urls.dynamodb, { method: 'POST', headers, body })
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('UnrecognizedClient')])
})

test("the emulators reject a function's access key", async () => {
  const { name, dynamodb } = functionWith(allow('dynamodb:GetItem', table))
  await dynamodb.send(get())
  const past = new DynamoDBClient(clientSettings(tableUrl, `KEY-${name}`))
  await expect(past.send(get())).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
})

test('a transaction requires the action of each part', async () => {
  const TransactItems = [
    { Put: { TableName: 'one', Item: key } },
    { Update: { TableName: 'one', Key: { ...key, sk: { S: 'c' } }, UpdateExpression: 'REMOVE nothing' } },
    { Delete: { TableName: 'one', Key: { ...key, sk: { S: 'd' } } } },
    {
      ConditionCheck: {
        TableName: 'one',
        Key: { ...key, sk: { S: 'e' } },
        ConditionExpression: 'attribute_not_exists(pk)',
      },
    },
  ]
  const needed = ['PutItem', 'UpdateItem', 'DeleteItem', 'ConditionCheckItem'].map((action) => `dynamodb:${action}`)
  for (const missing of needed) {
    const { name, dynamodb } = functionWith(allow(needed.filter((action) => action !== missing).join(' '), table))
    const write = dynamodb.send(new TransactWriteItemsCommand({ TransactItems }))
    await expect(write).rejects.toEqual(denied(name, missing))
  }
  const { dynamodb } = functionWith(allow(needed.join(' '), table))
  await dynamodb.send(new TransactWriteItemsCommand({ TransactItems }))
})

test('unrelated members of a request do not change the required permissions', async () => {
  const { name } = functionWith(allow('dynamodb:GetItem', table))
  const response = await fetch(gate.urls.dynamodb, {
    method: 'POST',
    headers: { 'x-amz-target': 'DynamoDB_20120810.PutItem', authorization: `Credential=KEY-${name}/x` },
    body: JSON.stringify({ TableName: 'one', Item: key, TransactItems: [], RequestItems: {} }),
  })
  expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('PutItem')])
})

const batch = (...names: string[]) =>
  new BatchGetItemCommand({ RequestItems: Object.fromEntries(names.map((name) => [name, { Keys: [key] }])) })

test('a batch requires the action on each table', async () => {
  const { name, dynamodb } = functionWith(allow('dynamodb:BatchGetItem', table))
  await dynamodb.send(batch('one'))
  const other = arn('dynamodb', 'table/two')
  await expect(dynamodb.send(batch('one', 'two'))).rejects.toEqual(denied(name, `dynamodb:BatchGetItem on ${other}`))
  const single = functionWith(allow('dynamodb:GetItem', table))
  await expect(single.dynamodb.send(batch('one'))).rejects.toEqual(denied(single.name, 'dynamodb:BatchGetItem'))
})

test('querying an index requires permission on the index', async () => {
  const query = new QueryCommand({
    TableName: 'one',
    IndexName: 'index',
    KeyConditionExpression: 'ik = :value',
    ExpressionAttributeValues: { ':value': { S: 'a' } },
  })
  const ofTable = functionWith(allow('dynamodb:Query', table))
  const denial = denied(ofTable.name, `dynamodb:Query on ${table}/index/index`)
  await expect(ofTable.dynamodb.send(query)).rejects.toEqual(denial)
  const ofIndex = functionWith(allow('dynamodb:Query', `${table}/index/index`))
  await ofIndex.dynamodb.send(query)
})

test('queues are identified by name; sending allows neither other queues nor receiving', async () => {
  const { name, sqs } = functionWith(allow('sqs:SendMessage', arn('sqs', 'jobs')))
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl('jobs'), MessageBody: 'one' }))
  const Entries = [{ Id: '1', MessageBody: 'two' }]
  await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl('jobs'), Entries }))
  const elsewhere = sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl('events'), Entries }))
  await expect(elsewhere).rejects.toEqual(denied(name, `sqs:SendMessage on ${arn('sqs', 'events')}`))
  const received = sqs.send(new ReceiveMessageCommand({ QueueUrl: queueUrl('jobs') }))
  await expect(received).rejects.toEqual(denied(name, 'sqs:ReceiveMessage'))
})

test('reading a secret allows neither writing it nor reading others', async () => {
  const { name, secrets } = functionWith(
    allow('secretsmanager:GetSecretValue', arn('secretsmanager', 'secret:own-AbCdEf')),
  )
  expect(await secrets.send(new GetSecretValueCommand({ SecretId: 'own' }))).toMatchObject({ SecretString: 'hidden' })
  const other = secrets.send(new GetSecretValueCommand({ SecretId: 'other' }))
  await expect(other).rejects.toEqual(denied(name, 'secretsmanager:GetSecretValue'))
  const write = secrets.send(new PutSecretValueCommand({ SecretId: 'own', SecretString: 'changed' }))
  await expect(write).rejects.toEqual(denied(name, 'secretsmanager:PutSecretValue'))
})

test('invoking one version allows no other version', async () => {
  const { name, lambda } = functionWith(allow('lambda:InvokeFunction', arn('lambda', 'function:one:live')))
  const invoke = (Qualifier: string) => lambda.send(new InvokeCommand({ FunctionName: 'one', Qualifier }))
  await expect(invoke('1')).rejects.toEqual(denied(name, `lambda:InvokeFunction on ${arn('lambda', 'function:one:1')}`))
  await expect(invoke('live')).rejects.toMatchObject({ name: 'ResourceNotFoundException' })
})

test('a removed statement allows nothing until it is restored; other roles are unaffected', async () => {
  const [statement, twin] = [allow('dynamodb:GetItem', table), allow('dynamodb:GetItem', table)]
  const [one, other] = [functionWith(statement), functionWith(twin)]
  const giveBack = gate.withhold(statement)
  await expect(one.dynamodb.send(get())).rejects.toEqual(denied(one.name, 'dynamodb:GetItem'))
  await other.dynamodb.send(get())
  giveBack()
  await one.dynamodb.send(get())
})
