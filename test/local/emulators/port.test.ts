import { MessageChannel } from 'node:worker_threads'
import {
  CreateTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb'
import { CreateQueueCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { createTableInput } from '@platform/core/db/schema'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { NoResponse } from '@platform/local/emulators/http/error'
import { type Call, callOver, serveCalls, transportOver } from '@platform/local/emulators/port'
import { startEmulators } from '@platform/local/emulators/start'
import { expect, test, vi } from 'vitest'

const target = 'DynamoDB_20120810.GetItem'

function connect(call: Call, timeLimit?: 'none', maxAttempts = 1) {
  const { port1, port2 } = new MessageChannel()
  serveCalls(port1, call)
  const client = new DynamoDBClient({ ...clientSettings('http://127.0.0.1:9', 'key'), maxAttempts })
  const callOperation = callOver(port2, timeLimit)
  transportOver(callOperation)(client)
  return { serverPort: port1, client, callOperation }
}

const read = (client: DynamoDBClient) => client.send(new GetItemCommand({ TableName: 'table', Key: {} }))

test('SDK clients reach the store and the queues over a port, with the responses and errors of HTTP', async () => {
  const emulators = await startEmulators(undefined, console.error)
  try {
    const useTransport = transportOver(callOver(emulators.connect()))
    const http = clientSettings(emulators.dynamoDbUrl, emulators.accessKeyId)
    const [store, httpStore] = [new DynamoDBClient(http), new DynamoDBClient(http)]
    useTransport(store)
    await store.send(new CreateTableCommand(createTableInput('table')))
    const Key = { pk: { S: 'Zoë 🚀' }, sk: { S: 'b' } }
    const Item = { ...Key, bytes: { B: Buffer.from([0, 255]) }, map: { M: { B: { S: 'text' } } } }
    const Put = { TableName: 'table', Item, ConditionExpression: 'attribute_not_exists(pk)' }
    await store.send(new PutItemCommand(Put))
    const get = new GetItemCommand({ TableName: 'table', Key })
    const storedItem = { ...Item, bytes: { B: new Uint8Array([0, 255]) } }
    for (const client of [store, httpStore]) expect((await client.send(get)).Item).toEqual(storedItem)

    const errorsOf = async (client: DynamoDBClient) => {
      const conditionalPut = { ...Put, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }
      const transaction = new TransactWriteItemsCommand({ TransactItems: [{ Put: conditionalPut }] })
      const results = await Promise.allSettled([client.send(new PutItemCommand(Put)), client.send(transaction)])
      return results.map((result) => {
        if (result.status === 'fulfilled') throw new Error('The condition held.')
        const { name, message, CancellationReasons, $metadata } = result.reason
        return { name, message, CancellationReasons, attempts: $metadata.attempts }
      })
    }
    const errors = await errorsOf(store)
    expect(errors).toMatchObject([
      { name: 'ConditionalCheckFailedException' },
      {
        name: 'TransactionCanceledException',
        CancellationReasons: [{ Item: { bytes: { B: new Uint8Array([0, 255]) } } }],
      },
    ])
    expect(errors).toEqual(await errorsOf(httpStore))

    const queues = new SQSClient(clientSettings(emulators.sqsUrl, emulators.accessKeyId))
    useTransport(queues)
    const { QueueUrl } = await queues.send(new CreateQueueCommand({ QueueName: 'queue' }))
    expect(QueueUrl).toMatch(emulators.sqsUrl)
    expect(await queues.send(new SendMessageCommand({ QueueUrl, MessageBody: 'é' }))).toHaveProperty('MessageId')
    const missingCommand = new SendMessageCommand({ QueueUrl: `${QueueUrl}s`, MessageBody: 'é' })
    await expect(queues.send(missingCommand)).rejects.toMatchObject({ name: 'QueueDoesNotExist' })
  } finally {
    await emulators.close()
  }
})

test('a call without a response times out', async () => {
  const { client } = connect(() => Promise.reject(new NoResponse({ hangs: true })))
  await expect(read(client)).rejects.toMatchObject({ name: 'TimeoutError' })
})

test.each([
  ['a temporary error', { statusCode: 500, body: '{"__type":"InternalServerError"}' }, 3],
  ['throttling', { statusCode: 400, body: '{"__type":"service#ThrottlingException"}' }, 3],
  ['any other error', { statusCode: 400, body: '{"__type":"service#ValidationException"}' }, 1],
])('after %s, a call is repeated as often as its client allows, or not at all', async (_name, response, callCount) => {
  const call = vi.fn<Call>(() => Promise.resolve(response))
  const { client } = connect(call, undefined, 3)
  await expect(read(client)).rejects.toMatchObject({ $metadata: { attempts: callCount } })
  expect(call).toHaveBeenCalledTimes(callCount)
})

test('a call whose connection the emulator closes is disconnected', async () => {
  const { client } = connect(() => Promise.reject(new NoResponse()))
  await expect(read(client)).rejects.toMatchObject({ code: 'ECONNRESET' })
})

test('running and later calls fail when the emulators end', async () => {
  const called = Promise.withResolvers<string>()
  const { client, serverPort } = connect((name) => {
    called.resolve(name)
    return new Promise(() => undefined)
  })
  const readPromise = read(client)
  expect(await called.promise).toBe(target)
  serverPort.close()
  await expect(readPromise).rejects.toMatchObject({ code: 'ECONNRESET' })
  await expect(read(client)).rejects.toMatchObject({ code: 'ECONNRESET' })
})

test('at most 50 calls run at a time; the others wait for a response', async () => {
  const responses: PromiseWithResolvers<void>[] = []
  const { client } = connect(async () => {
    const response = Promise.withResolvers<void>()
    responses.push(response)
    await response.promise
    return { statusCode: 200, body: '{}' }
  }, 'none')
  const reads = Array.from({ length: 120 }, () => read(client))
  await vi.waitFor(() => expect(responses).toHaveLength(50))
  for (let index = 0; index < reads.length; index++) {
    await vi.waitFor(() => expect(responses.length).toBeGreaterThan(index))
    expect(responses.length).toBeLessThanOrEqual(50 + index)
    responses[index]?.resolve()
  }
  await Promise.all(reads)
})

test('the time limit of a call includes the wait for others', async () => {
  const { client } = connect(() => new Promise(() => undefined))
  const results = await Promise.allSettled(Array.from({ length: 60 }, () => read(client)))
  expect(results).toMatchObject(results.map(() => ({ status: 'rejected', reason: { name: 'TimeoutError' } })))
})

test('an aborted call ends, even if it waits for others or gets no response', async () => {
  let callCount = 0
  const { callOperation } = connect(() => {
    callCount++
    return Promise.reject(new NoResponse({ hangs: true }))
  })
  const abort = new AbortController()
  const results = Promise.allSettled(Array.from({ length: 60 }, () => callOperation(target, {}, abort.signal)))
  await vi.waitFor(() => expect(callCount).toBe(50))
  abort.abort()
  const codes = (await results).map((result) => result.status === 'rejected' && result.reason.code)
  expect(codes).toEqual(codes.map(() => 'ECONNRESET'))
})
