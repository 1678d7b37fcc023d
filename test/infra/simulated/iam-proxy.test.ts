import {
  BatchGetItemCommand,
  CreateTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb'
import { createTableInput } from '@platform/core/db/schema'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { startDynamoDb } from '@platform/local/emulators/dynamodb/server'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type IamProxy, type Principal, startIamProxy } from '../../simulator/aws/iam-proxy.ts'
import { lambdaPermissions, targetPermissions } from '../../simulator/aws/required-permissions.ts'
import { arn } from '../../simulator/graph/answers.ts'
import { allowing, parsePolicy, type Statement } from '../../simulator/graph/policy.ts'

const resources = new AsyncDisposableStack()
const principals = new Map<string, Principal>()
let iamProxy: IamProxy
let tableUrl: string

beforeAll(async () => {
  const owner = { accessKeyId: 'owner' }
  const dynamodb = await startDynamoDb(owner)
  resources.defer(() => dynamodb.close())
  tableUrl = dynamodb.url
  await new DynamoDBClient(clientSettings(tableUrl, 'owner')).send(new CreateTableCommand(createTableInput('one')))
  const targets = { dynamodb: tableUrl, sqs: '', secrets: '', lambda: '', ecr: '', iot: '' }
  iamProxy = resources.use(await startIamProxy({ targets, ...owner, principalOf: (key) => principals.get(key) }))
})
afterAll(() => resources.disposeAsync())

const table = arn('dynamodb', 'table/one')
const allow = (actions: string, ...Resource: string[]): Statement => ({
  Effect: 'Allow',
  Action: actions.split(' '),
  Resource,
})

function functionWith(...statements: Statement[]) {
  const name = `function-${principals.size}`
  principals.set(`KEY-${name}`, { name, statements })
  return { name, dynamodb: new DynamoDBClient(clientSettings(iamProxy.urls.dynamodb, `KEY-${name}`)) }
}

const key = { pk: { S: 'a' }, sk: { S: 'b' } }
const get = () => new GetItemCommand({ TableName: 'one', Key: key })
const put = () => new PutItemCommand({ TableName: 'one', Item: key })
const denialOf = (name: string, permission: string) =>
  expect.objectContaining({
    name: expect.stringMatching(/^AccessDenied/),
    message: expect.stringContaining(`${name} is not authorized to perform ${permission}`),
  })

test('denies a request that no statement allows and records it', async () => {
  const { name, dynamodb } = functionWith(allow('dynamodb:GetItem', table))
  await expect(dynamodb.send(put())).rejects.toEqual(denialOf(name, `dynamodb:PutItem on ${table}`))
  expect((await dynamodb.send(get())).Item).toBeUndefined()
  expect(iamProxy.denials.at(-1)).toEqual({ functionName: name, action: 'dynamodb:PutItem', resource: table })
})

test('allows a request and records the statement as used', async () => {
  const statements = [allow('dynamodb:PutItem dynamodb:DeleteItem', table), allow('dynamodb:GetItem', table)]
  const { dynamodb } = functionWith(...statements)
  await dynamodb.send(put())
  expect((await dynamodb.send(get())).Item).toEqual(key)
  const usedActions = statements.map((each) => [...(iamProxy.used.get(each) ?? [])])
  expect(usedActions).toEqual([['dynamodb:PutItem'], ['dynamodb:GetItem']])
})

test('rejects unknown access keys, and the emulators reject those of functions', async () => {
  const { name } = functionWith(allow('dynamodb:GetItem', table))
  for (const client of [
    new DynamoDBClient(clientSettings(iamProxy.urls.dynamodb, 'KEY-unknown')),
    new DynamoDBClient(clientSettings(tableUrl, `KEY-${name}`)),
  ]) {
    await expect(client.send(get())).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
  }
})

test('a transaction requires the action of each part', async () => {
  const TransactItems = [
    { Put: { TableName: 'one', Item: key } },
    { Delete: { TableName: 'one', Key: { ...key, sk: { S: 'd' } } } },
  ]
  const { name, dynamodb } = functionWith(allow('dynamodb:PutItem', table))
  const write = dynamodb.send(new TransactWriteItemsCommand({ TransactItems }))
  await expect(write).rejects.toEqual(denialOf(name, 'dynamodb:DeleteItem'))
})

test('a batch requires the action on each table, and a query on the index', async () => {
  const { name, dynamodb } = functionWith(allow('dynamodb:BatchGetItem dynamodb:Query', table))
  const RequestItems = { one: { Keys: [key] }, two: { Keys: [key] } }
  const batch = dynamodb.send(new BatchGetItemCommand({ RequestItems }))
  await expect(batch).rejects.toEqual(denialOf(name, `dynamodb:BatchGetItem on ${arn('dynamodb', 'table/two')}`))
  const query = dynamodb.send(
    new QueryCommand({ TableName: 'one', IndexName: 'byTime', KeyConditionExpression: 'a = b' }),
  )
  await expect(query).rejects.toEqual(denialOf(name, `dynamodb:Query on ${table}/index/byTime`))
})

test('a withheld statement allows nothing until it is restored, and records no denial', async () => {
  const statement = allow('dynamodb:GetItem', table)
  const { name, dynamodb } = functionWith(statement)
  const count = iamProxy.denials.length
  const withheld = iamProxy.withhold(statement)
  await expect(dynamodb.send(get())).rejects.toEqual(denialOf(name, 'dynamodb:GetItem'))
  withheld[Symbol.dispose]()
  await dynamodb.send(get())
  expect(iamProxy.denials).toHaveLength(count)
})

const lambdaArn = arn('lambda', 'function:one')
const tagsPath = `/2017-03-31/tags/${encodeURIComponent(lambdaArn)}`

test.each([
  [lambdaPermissions('GET', tagsPath, {}), 'lambda:ListTags', lambdaArn],
  [lambdaPermissions('POST', tagsPath, {}), 'lambda:TagResource', lambdaArn],
  [lambdaPermissions('PUT', tagsPath, {}), `lambda:unknown PUT ${tagsPath.slice('/2017-03-31'.length)}`, '*'],
  [
    lambdaPermissions('POST', '/2015-03-31/functions/one/invocations?Qualifier=live', {}),
    'lambda:InvokeFunction',
    `${lambdaArn}:live`,
  ],
  [
    targetPermissions('AmazonSQS.SendMessageBatch', { QueueUrl: 'https://sqs/1/jobs' }),
    'sqs:SendMessage',
    arn('sqs', 'jobs'),
  ],
  [
    targetPermissions('secretsmanager.GetSecretValue', { SecretId: 'own' }),
    'secretsmanager:GetSecretValue',
    arn('secretsmanager', 'secret:own-AbCdEf'),
  ],
  [targetPermissions('Unknown.Action', {}), 'Unknown.Action', '*'],
])('a request requires %j', (permissions, action, resource) => {
  expect(permissions).toEqual([{ action, resource }])
})

const statement = { Effect: 'Allow', Action: ['dynamodb:GetItem'], Resource: [table] }
const policyOf = (...statements: object[]) => JSON.stringify({ Version: '2012-10-17', Statement: statements })

test.each([
  { Effect: 'Deny' },
  { Condition: { StringEquals: { 'aws:SourceAccount': '000000000000' } } },
  { NotResource: ['*'] },
  { Action: 'dynamodb:*' },
])('rejects a policy with an unsupported statement: %j', (change) => {
  expect(parsePolicy(policyOf(statement))).toEqual([statement])
  expect(() => parsePolicy(policyOf({ ...statement, ...change }))).toThrow()
})

test.each([
  ['sqs:SendMessage', arn('sqs', 'jobs'), true],
  ['sqs:ReceiveMessage', arn('sqs', 'jobs'), false],
  ['sqs:Send', arn('sqs', 'jobs'), false],
  ['sqs:SendMessage', arn('sqs', 'job'), false],
  ['sqs:SendMessage', 'jobs', false],
  ['sqs:ReceiveMessage sqs:SendMessage', arn('sqs', 'jobs'), true],
  ['sqs:*', arn('sqs', '*'), true],
  ['sqs:SendMessage', arn('sqs', 'job?'), true],
  ['sqs:SendMessage', arn('sqs', 'jobs?'), false],
  ['sqs:SendMessage', arn('sqs', 'jobs').replaceAll(':', '.'), false],
])('a statement for %s on %s allows sending to the queue: %j', (actions, resource, isAllowed) => {
  const permission = { action: 'sqs:SendMessage', resource: arn('sqs', 'jobs') }
  expect(allowing([allow(actions, resource)], permission) !== undefined).toBe(isAllowed)
})
