import {
  CreateTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb'
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  SetQueueAttributesCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { deadLetterRetentionSeconds, type WorkQueueName, workQueues } from '@platform/contract/task'
import { createTableInput, ttlAttribute } from '@platform/core/db/schema'
import { clientSettings, type EmulatorAddresses } from './emulators/http/environment.ts'
import { visibilityTimeoutSeconds } from './function-limits.ts'

export interface Queue {
  url: string
  arn: string
}

export type QueueName = WorkQueueName | `${WorkQueueName}-dead-letter`
export type Queues = ReadonlyMap<QueueName, Queue>

/** Creates the table and the queues if they are missing. Updates the settings of existing queues. */
export async function provision(emulators: EmulatorAddresses, tableName: string): Promise<Queues> {
  const [queues] = await Promise.all([provisionQueues(emulators), provisionTable(emulators, tableName)])
  return queues
}

async function provisionTable(emulators: EmulatorAddresses, tableName: string): Promise<void> {
  const client = new DynamoDBClient(clientSettings(emulators.dynamoDbUrl, emulators.accessKeyId))
  try {
    await client.send(new CreateTableCommand(createTableInput(tableName))).catch(ignoreExisting)
    await waitUntilTableExists({ client, minDelay: 1, maxWaitTime: 20 }, { TableName: tableName })
    await enableExpiry(client, tableName)
  } finally {
    client.destroy()
  }
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof ResourceInUseException)) throw error
}

async function enableExpiry(client: DynamoDBClient, TableName: string): Promise<void> {
  const { TimeToLiveDescription } = await client.send(new DescribeTimeToLiveCommand({ TableName }))
  if (TimeToLiveDescription?.TimeToLiveStatus === 'ENABLED') return
  const TimeToLiveSpecification = { AttributeName: ttlAttribute, Enabled: true }
  await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }))
}

async function provisionQueues(emulators: EmulatorAddresses): Promise<Queues> {
  const client = new SQSClient(clientSettings(emulators.sqsUrl, emulators.accessKeyId))
  try {
    const pairs = await Promise.all(workQueues.map(({ name }) => provisionPair(client, name)))
    return new Map(pairs.flat())
  } finally {
    client.destroy()
  }
}

async function provisionPair(client: SQSClient, name: WorkQueueName) {
  const VisibilityTimeout = String(visibilityTimeoutSeconds(name))
  const deadLetterName = `${name}-dead-letter` as const
  const deadLetter = await provisionQueue(client, deadLetterName, {
    VisibilityTimeout,
    MessageRetentionPeriod: String(deadLetterRetentionSeconds),
  })
  const queue = await provisionQueue(client, name, {
    VisibilityTimeout,
    RedrivePolicy: JSON.stringify({ deadLetterTargetArn: deadLetter.arn, maxReceiveCount: 5 }),
  })
  return [[name, queue] as const, [deadLetterName, deadLetter] as const]
}

async function provisionQueue(client: SQSClient, name: string, attributes: Record<string, string>): Promise<Queue> {
  const { QueueUrl: url = '' } = await client.send(new CreateQueueCommand({ QueueName: name }))
  await client.send(new SetQueueAttributesCommand({ QueueUrl: url, Attributes: attributes }))
  const command = new GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ['QueueArn'] })
  const arn = (await client.send(command)).Attributes?.['QueueArn'] ?? ''
  return { url, arn }
}
