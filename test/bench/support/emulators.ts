import { fork } from 'node:child_process'
import { once } from 'node:events'
import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { workQueues } from '@platform/contract/task'
import { createTableInput } from '@platform/core/db/schema'

/** DynamoDB, SQS and Secrets Manager in another process, whose CPU time does not count, with an empty table and queues. */
export interface Emulators extends AsyncDisposable {
  environment: Record<string, string>
}

export const tableName = 'platform'

const program = new URL('../../support/emulators-process.ts', import.meta.url)

export const withoutRateLimits = {
  ...Object.fromEntries(
    ['SIGN_IN_USER', 'SIGN_IN_ADDRESS', 'SIGN_INS', 'SETUP', 'REFRESH', 'ENROLL', 'BATCH', 'API'].map((name) => [
      `PLAT_LIMIT_${name}_PER_MINUTE`,
      '1000000',
    ]),
  ),
  PLAT_LIMIT_API_BURST: '1000000',
}

export async function startEmulators(): Promise<Emulators> {
  const child = fork(program, { execArgv: [] })
  const [endpoints]: Record<string, string>[] = await once(child, 'message')
  const environment = {
    ...endpoints,
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'bench',
    AWS_SECRET_ACCESS_KEY: 'bench',
    ...withoutRateLimits,
    PLAT_TABLE: tableName,
    // A closed port: no module host runs.
    PLAT_MODULE_HOST_URL: 'http://127.0.0.1:9',
  }
  const store = new DynamoDBClient(clientSettings(environment, 'DYNAMODB'))
  await store.send(new CreateTableCommand(createTableInput(tableName)))
  return {
    environment: { ...environment, ...(await createQueues(environment)) },
    [Symbol.asyncDispose]: async () => {
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

async function createQueues(environment: Record<string, string>): Promise<Record<string, string>> {
  const queues = new SQSClient(clientSettings(environment, 'SQS'))
  const settings = workQueues.map(async ({ name: QueueName }) => {
    const { QueueUrl = '' } = await queues.send(new CreateQueueCommand({ QueueName }))
    return [`PLAT_QUEUE_${QueueName.toUpperCase()}`, QueueUrl]
  })
  return Object.fromEntries(await Promise.all(settings))
}

/** Client settings for these emulators, independent of this process's environment. */
export const clientSettings = (environment: Record<string, string>, service: 'DYNAMODB' | 'SQS') => ({
  endpoint: environment[`AWS_ENDPOINT_URL_${service}`] ?? '',
  region: environment['AWS_REGION'] ?? '',
  credentials: {
    accessKeyId: environment['AWS_ACCESS_KEY_ID'] ?? '',
    secretAccessKey: environment['AWS_SECRET_ACCESS_KEY'] ?? '',
  },
})
