import { CreateTableCommand, DynamoDBClient, UpdateTimeToLiveCommand } from '@aws-sdk/client-dynamodb'
import {
  CreateAliasCommand,
  CreateFunctionCommand,
  type LambdaClient,
  PublishVersionCommand,
  waitUntilFunctionActiveV2,
} from '@aws-sdk/client-lambda'
import { CreateSecretCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { keySchema } from '@platform/core/db/schema'
import { clientSettings } from '@platform/local/emulators/http/environment'
import * as z from 'zod'
import type { DeployedFunction } from '../graph/functions.ts'
import { type Graph, ofType } from '../graph/graph.ts'
import { folderBucket } from '../lambda/code.ts'

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

async function createTable(graph: Graph, client: DynamoDBClient): Promise<void> {
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
}

const QueueInputs = z.object({
  name: z.string(),
  visibilityTimeoutSeconds: z.number(),
  messageRetentionSeconds: z.number().optional(),
  redrivePolicy: z.string().optional(),
})

/** Creates dead-letter queues first, because other queues refer to them. */
async function createQueues(graph: Graph, client: SQSClient): Promise<void> {
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
}

/** Creates secrets without values; the platform writes the values. */
async function createSecrets(graph: Graph, client: SecretsManagerClient): Promise<void> {
  for (const { inputs } of ofType(graph, 'aws:secretsmanager/secret:Secret')) {
    await client.send(new CreateSecretCommand({ Name: String(inputs['name']) }))
  }
}

interface Emulators {
  accessKeyId: string
  dynamodb: string
  sqs: string
  secrets: string
}

export async function provision(graph: Graph, { accessKeyId, dynamodb, sqs, secrets }: Emulators): Promise<void> {
  using clients = new DisposableStack()
  const destroy = (client: { destroy: () => void }) => client.destroy()
  await Promise.all([
    createTable(graph, clients.adopt(new DynamoDBClient(clientSettings(dynamodb, accessKeyId)), destroy)),
    createQueues(graph, clients.adopt(new SQSClient(clientSettings(sqs, accessKeyId)), destroy)),
    createSecrets(graph, clients.adopt(new SecretsManagerClient(clientSettings(secrets, accessKeyId)), destroy)),
  ])
}

export const deployFunctions = async (client: LambdaClient, functions: readonly DeployedFunction[]): Promise<void> =>
  void (await Promise.all(functions.map((each) => deploy(client, each))))

async function deploy(
  client: LambdaClient,
  { name, functionName, role, ...settings }: DeployedFunction,
): Promise<void> {
  const { timeoutSeconds: Timeout, memoryMb: MemorySize, environment, alias } = settings
  const FunctionName = functionName
  await client.send(
    new CreateFunctionCommand({
      FunctionName,
      Role: role,
      Timeout,
      MemorySize,
      Environment: { Variables: environment },
      Runtime: 'nodejs24.x',
      Handler: 'index.handler',
      Code: { S3Bucket: folderBucket, S3Key: name },
    }),
  )
  const poll = { client, minDelay: 0.05, maxDelay: 1, maxWaitTime: 60 }
  await waitUntilFunctionActiveV2(poll, { FunctionName })
  const { Version: FunctionVersion } = await client.send(new PublishVersionCommand({ FunctionName }))
  await waitUntilFunctionActiveV2(poll, { FunctionName, Qualifier: FunctionVersion })
  await client.send(new CreateAliasCommand({ FunctionName, Name: alias, FunctionVersion }))
}
