import { MessageChannel } from 'node:worker_threads'
import { CreateTableCommand, DynamoDBClient, GetItemCommand, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { CreateQueueCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { createTableInput } from '@platform/core/db/schema'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { NoResponse } from '@platform/local/emulators/http/error'
import { type Call, serveCalls, transportOver } from '@platform/local/emulators/port'
import { startEmulators } from '@platform/local/emulators/start'
import { expect, test, vi } from 'vitest'

const target = 'DynamoDB_20120810.GetItem'

function connect(call: Call, ...timeLimit: ['none'] | []) {
  const { port1, port2 } = new MessageChannel()
  serveCalls(port1, call)
  const settings = {
    ...clientSettings('http://127.0.0.1:9', 'key'),
    ...transportOver(port2, ...timeLimit),
    maxAttempts: 1,
  }
  return { serverPort: port1, client: new DynamoDBClient(settings) }
}

const read = (client: DynamoDBClient) => client.send(new GetItemCommand({ TableName: 'table', Key: {} }))

test('SDK clients reach the store and the queues over a port, with the responses and errors of HTTP', async () => {
  const emulators = await startEmulators(undefined, console.error)
  try {
    const transport = transportOver(emulators.connect())
    const http = clientSettings(emulators.dynamoDbUrl, emulators.accessKeyId)
    const store = new DynamoDBClient({ ...http, ...transport })
    await store.send(new CreateTableCommand(createTableInput('table')))
    const Item = { pk: { S: 'Zoë 🚀' }, sk: { S: 'b' } }
    const put = new PutItemCommand({ TableName: 'table', Item, ConditionExpression: 'attribute_not_exists(pk)' })
    await store.send(put)
    const get = new GetItemCommand({ TableName: 'table', Key: Item })
    expect((await store.send(get)).Item).toEqual((await new DynamoDBClient(http).send(get)).Item)
    await expect(store.send(put)).rejects.toMatchObject({ name: 'ConditionalCheckFailedException' })

    const queues = new SQSClient({ ...clientSettings(emulators.sqsUrl, emulators.accessKeyId), ...transport })
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
  const { client } = connect(() => {
    callCount++
    return Promise.reject(new NoResponse({ hangs: true }))
  })
  const abort = new AbortController()
  const options = { abortSignal: abort.signal }
  const get = new GetItemCommand({ TableName: 'table', Key: {} })
  const results = Promise.allSettled(Array.from({ length: 60 }, () => client.send(get, options)))
  await vi.waitFor(() => expect(callCount).toBe(50))
  abort.abort()
  const names = (await results).map((result) => result.status === 'rejected' && result.reason.name)
  expect(names).toEqual(names.map(() => 'AbortError'))
})
