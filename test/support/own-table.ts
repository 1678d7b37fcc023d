import { randomUUID } from 'node:crypto'
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { createTableInput } from '@platform/core/db/schema'

// Every test file has a table, a queue and secrets of its own. Settings are read when core is first imported: later.
const own = randomUUID()
const queueUrl = async (name: string) =>
  (await new SQSClient().send(new CreateQueueCommand({ QueueName: `${name}-${own}` }))).QueueUrl

Object.assign(process.env, {
  PLAT_TABLE: `platform-${own}`,
  PLAT_QUEUE_JOBS: await queueUrl('jobs'),
  PLAT_QUEUE_BATCHES: await queueUrl('batches'),
  PLAT_QUEUE_EVENTS: await queueUrl('events'),
  PLAT_QUEUE_WEBHOOKS: await queueUrl('webhooks'),
  PLAT_QUEUE_UPDATES: await queueUrl('updates'),
  PLAT_QUEUE_MODULES: await queueUrl('modules'),
  PLAT_SECRET_REGISTRIES: `registries-${own}`,
  PLAT_SECRET_SIGNING_KEYS: `signing-keys-${own}`,
  PLAT_SECRET_ADMIN_TOKEN: `admin-token-${own}`,
  PLAT_SECRET_IDENTITY_PREFIX: `identity-${own}`,
  PLAT_LOG_LEVEL: 'error',
  PLAT_CHECK_RESPONSES: '1',
})

await new DynamoDBClient().send(new CreateTableCommand(createTableInput(`platform-${own}`)))
