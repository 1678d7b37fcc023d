import { randomUUID } from 'node:crypto'
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { workQueues } from '@platform/contract/task'
import { createTableInput } from '@platform/core/db/schema'

// Each test file has its own table, queues and secrets. Core reads these settings when it is first imported.
const own = randomUUID()
const [sqs, store] = [new SQSClient(), new DynamoDBClient()]

const made = workQueues.map(async ({ name }) => {
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: `${name}-${own}` }))
  return [`PLAT_QUEUE_${name.toUpperCase()}`, QueueUrl] as const
})
await store.send(new CreateTableCommand(createTableInput(`platform-${own}`)))

Object.assign(process.env, Object.fromEntries(await Promise.all(made)), {
  PLAT_TABLE: `platform-${own}`,
  PLAT_SECRET_REGISTRIES: `registries-${own}`,
  PLAT_SECRET_SIGNING_KEYS: `signing-keys-${own}`,
  PLAT_SECRET_ADMIN_TOKEN: `admin-token-${own}`,
  PLAT_SECRET_IDENTITY_PREFIX: `identity-${own}`,
  PLAT_LOG_LEVEL: 'error',
  PLAT_VALIDATE_RESPONSES: '1',
})
