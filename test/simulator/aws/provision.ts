import { CreateTableCommand, DynamoDBClient, UpdateTimeToLiveCommand } from '@aws-sdk/client-dynamodb'
import { CreateSecretCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { keySchema } from '@platform/core/db/schema'
import { clientSettings } from '@platform/local/emulators/http/environment'
import * as z from 'zod'
import { type Graph, ofType } from '../graph/graph.ts'

/** Creates the table, queues and secrets of a graph in the emulators. */

const TableInputs = z.object({
  name: z.string(),
  attributes: z.array(z.object({ name: z.string(), type: z.literal('S') })),
  hashKey: z.string(),
  rangeKey: z.string(),
  globalSecondaryIndexes: z.array(
    z.object({ name: z.string(), hashKey: z.string(), rangeKey: z.string(), projectionType: z.literal('KEYS_ONLY') }),
  ),
  ttl: z.object({ attributeName: z.string(), enabled: z.literal(true) }),
})

async function makeTable(graph: Graph, url: string, accessKeyId: string): Promise<void> {
  const client = new DynamoDBClient(clientSettings(url, accessKeyId))
  for (const { inputs } of ofType(graph, 'aws:dynamodb/table:Table')) {
    const { name: TableName, attributes, hashKey, rangeKey, globalSecondaryIndexes, ttl } = TableInputs.parse(inputs)
    await client.send(
      new CreateTableCommand({
        TableName,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: attributes.map(({ name, type }) => ({ AttributeName: name, AttributeType: type })),
        KeySchema: keySchema(hashKey, rangeKey),
        GlobalSecondaryIndexes: globalSecondaryIndexes.map(({ name, projectionType, ...index }) => ({
          IndexName: name,
          KeySchema: keySchema(index.hashKey, index.rangeKey),
          Projection: { ProjectionType: projectionType },
        })),
      }),
    )
    const TimeToLiveSpecification = { AttributeName: ttl.attributeName, Enabled: true }
    await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }))
  }
  client.destroy()
}

const QueueInputs = z.object({
  name: z.string(),
  visibilityTimeoutSeconds: z.number(),
  messageRetentionSeconds: z.number().optional(),
  redrivePolicy: z.string().optional(),
})

/** Dead-letter queues first, because others refer to them. */
async function makeQueues(graph: Graph, url: string, accessKeyId: string): Promise<void> {
  const client = new SQSClient(clientSettings(url, accessKeyId))
  const queues = ofType(graph, 'aws:sqs/queue:Queue').map(({ inputs }) => QueueInputs.parse(inputs))
  for (const queue of queues.toSorted((a, b) => Number(Boolean(a.redrivePolicy)) - Number(Boolean(b.redrivePolicy)))) {
    const { name, visibilityTimeoutSeconds, messageRetentionSeconds, redrivePolicy } = queue
    const Attributes = {
      VisibilityTimeout: String(visibilityTimeoutSeconds),
      ...(messageRetentionSeconds && { MessageRetentionPeriod: String(messageRetentionSeconds) }),
      ...(redrivePolicy && { RedrivePolicy: redrivePolicy }),
    }
    await client.send(new CreateQueueCommand({ QueueName: name, Attributes }))
  }
  client.destroy()
}

/** As a deployment leaves them: without a value. */
async function makeSecrets(graph: Graph, url: string, accessKeyId: string): Promise<void> {
  const client = new SecretsManagerClient(clientSettings(url, accessKeyId))
  for (const { inputs } of ofType(graph, 'aws:secretsmanager/secret:Secret')) {
    await client.send(new CreateSecretCommand({ Name: String(inputs['name']) }))
  }
  client.destroy()
}

interface StandIns {
  accessKeyId: string
  dynamodb: string
  sqs: string
  secrets: string
}

export async function provision(graph: Graph, { accessKeyId, dynamodb, sqs, secrets }: StandIns): Promise<void> {
  await Promise.all([
    makeTable(graph, dynamodb, accessKeyId),
    makeQueues(graph, sqs, accessKeyId),
    makeSecrets(graph, secrets, accessKeyId),
  ])
}
