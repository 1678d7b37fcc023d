import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  type Message,
  type QueueAttributeName,
  ReceiveMessageCommand,
  type ReceiveMessageCommandInput,
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  SendMessageCommand,
  type SendMessageCommandInput,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { type SqsOptions, startSqs } from '@platform/local/emulators/sqs/server'
import { expect, onTestFinished } from 'vitest'
import * as z from 'zod'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

export async function temporaryDir(): Promise<string> {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  return folder.path
}

export async function serveSqs(options: SqsOptions = {}) {
  const sqs = await startSqs(options)
  onTestFinished(() => sqs.close())
  return { sqs, client: sqsClient(sqs.url) }
}

export async function serveQueue(attributes?: QueueAttributes) {
  const { sqs, client } = await serveSqs({ dataDir: await temporaryDir() })
  return { sqs, client, queue: await TestQueue.create(client, attributes) }
}

type QueueAttributes = Partial<Record<QueueAttributeName, string>>

export function sqsClient(endpoint: string) {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  const client = new SQSClient({ endpoint, region: 'eu-central-1', credentials, maxAttempts: 1 })
  onTestFinished(() => client.destroy())
  return client
}

export class TestQueue {
  readonly client: SQSClient
  readonly url: string

  constructor(client: SQSClient, url: string) {
    this.client = client
    this.url = url
  }

  static async create(client: SQSClient, attributes: QueueAttributes = {}) {
    const createdQueue = await client.send(
      new CreateQueueCommand({ QueueName: `queue-${crypto.randomUUID()}`, Attributes: attributes }),
    )
    return new TestQueue(client, createdQueue.QueueUrl!)
  }

  send(body: string, options: Partial<SendMessageCommandInput> = {}) {
    return this.client.send(new SendMessageCommand({ QueueUrl: this.url, MessageBody: body, ...options }))
  }

  async receive(options: Partial<ReceiveMessageCommandInput> = {}, abortSignal?: AbortSignal): Promise<Message[]> {
    const command = new ReceiveMessageCommand({ QueueUrl: this.url, MaxNumberOfMessages: 10, ...options })
    const output = await this.client.send(command, abortSignal === undefined ? {} : { abortSignal })
    return output.Messages ?? []
  }

  /** Receives with the longest wait that SQS allows. */
  await(options: Partial<ReceiveMessageCommandInput> = {}) {
    return this.receive({ WaitTimeSeconds: 20, ...options })
  }

  sendBatch(entries: SendMessageBatchRequestEntry[]) {
    return this.client.send(new SendMessageBatchCommand({ QueueUrl: this.url, Entries: entries }))
  }

  deleteBatch(handles: (string | undefined)[]) {
    const entries = handles.map((handle, index) => ({ Id: `entry-${index}`, ReceiptHandle: handle }))
    return this.client.send(new DeleteMessageBatchCommand({ QueueUrl: this.url, Entries: entries }))
  }

  delete(handle: string | undefined) {
    return this.client.send(new DeleteMessageCommand({ QueueUrl: this.url, ReceiptHandle: handle }))
  }

  changeVisibility(handle: string | undefined, seconds: number) {
    const input = { QueueUrl: this.url, ReceiptHandle: handle, VisibilityTimeout: seconds }
    return this.client.send(new ChangeMessageVisibilityCommand(input))
  }

  async attributes(): Promise<Partial<Record<string, string>>> {
    const command = new GetQueueAttributesCommand({ QueueUrl: this.url, AttributeNames: ['All'] })
    return (await this.client.send(command)).Attributes ?? {}
  }

  async arn() {
    return (await this.attributes())['QueueArn']!
  }
}

export async function countCalls(serverUrl: string, action: string): Promise<number> {
  const response = await fetch(`${serverUrl}/_metrics`)
  const counts = z.record(z.string(), z.number()).parse(await response.json())
  return counts[action] ?? 0
}

export const poll = <Value>(value: () => Value) => expect.poll(value, { timeout: 20_000, interval: 10 })
