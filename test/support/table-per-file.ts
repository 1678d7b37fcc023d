import { randomUUID } from 'node:crypto'
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { workQueues } from '@platform/contract/task'
import { createTableInput } from '@platform/core/db/schema'

// Each test file has its own table, queues and secrets. Core reads these settings when it is first imported.
const suffix = randomUUID()
const [sqs, store] = [new SQSClient(), new DynamoDBClient()]

const queues = workQueues.map(async ({ name }) => {
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: `${name}-${suffix}` }))
  return [`PLAT_QUEUE_${name.toUpperCase()}`, QueueUrl] as const
})
await store.send(new CreateTableCommand(createTableInput(`platform-${suffix}`)))

Object.assign(process.env, Object.fromEntries(await Promise.all(queues)), {
  PLAT_TABLE: `platform-${suffix}`,
  PLAT_SECRET_REGISTRIES: `registries-${suffix}`,
  PLAT_SECRET_KEYS_PREFIX: `keys-${suffix}`,
  PLAT_SECRET_ADMIN_TOKEN: `admin-token-${suffix}`,
  PLAT_SECRET_IDENTITY_PREFIX: `identity-${suffix}`,
  PLAT_LOG_LEVEL: 'error',
  PLAT_VALIDATE_RESPONSES: '1',
})
