import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { CreateQueueCommand, SQSClient } from '@aws-sdk/client-sqs'
import { workQueues } from '@platform/contract/task'
import { createTableInput } from '@platform/core/db/schema'
import { type StandIns, startStandIns } from './stand-ins.ts'

/** An empty platform: stand-ins with its table and its queues, and the environment in which functions find them. */
export type World = StandIns

export const tableName = 'platform'

/** No limit of D34 may strike a bench. */
const limits = ['SIGN_IN_USER', 'SIGN_IN_ADDRESS', 'SETUP', 'REFRESH', 'ENROLL', 'BATCH', 'API']
const highLimits = Object.fromEntries(limits.map((name) => [`PLAT_LIMIT_${name}_PER_MINUTE`, '1000000']))

export async function startWorld(): Promise<World> {
  const emulators = await startStandIns()
  const { environment } = emulators
  const store = new DynamoDBClient(clientSettings(environment, 'DYNAMODB'))
  await store.send(new CreateTableCommand(createTableInput(tableName)))
  const settings = {
    PLAT_TABLE: tableName,
    PLAT_LIMIT_API_BURST: '1000000',
    // Nobody is there: requests to modules go past their host.
    PLAT_MODULE_HOST_URL: 'http://127.0.0.1:9',
    ...(await createQueues(environment)),
  }
  return { ...emulators, environment: { ...environment, ...highLimits, ...settings } }
}

/** The settings that name the queues. */
async function createQueues(environment: Record<string, string>): Promise<Record<string, string>> {
  const queues = new SQSClient(clientSettings(environment, 'SQS'))
  const settings = workQueues.map(async ({ name: QueueName }) => {
    const { QueueUrl = '' } = await queues.send(new CreateQueueCommand({ QueueName }))
    return [`PLAT_QUEUE_${QueueName.toUpperCase()}`, QueueUrl]
  })
  return Object.fromEntries(await Promise.all(settings))
}

/** Settings of a client of one world, whatever this process's own environment says. */
export const clientSettings = (environment: Record<string, string>, service: 'DYNAMODB' | 'SQS') => ({
  endpoint: environment[`AWS_ENDPOINT_URL_${service}`] ?? '',
  region: environment['AWS_REGION'] ?? '',
  credentials: {
    accessKeyId: environment['AWS_ACCESS_KEY_ID'] ?? '',
    secretAccessKey: environment['AWS_SECRET_ACCESS_KEY'] ?? '',
  },
})
