import { startDynamoDb } from '../../packages/local/src/emulators/dynamodb/server.ts'
import { startSecretsManager } from '../../packages/local/src/emulators/secrets/server.ts'
import { startSqs } from '../../packages/local/src/emulators/sqs/server.ts'
import * as hooks from './emulators/hooks.ts'

const [dynamoDb, sqs, secrets] = await Promise.all([
  startDynamoDb({ hooks: hooks.dynamoDb }),
  startSqs({ hooks: hooks.sqs }),
  startSecretsManager(),
])

process.on('disconnect', () => process.exit())
process.send?.({
  AWS_ENDPOINT_URL_DYNAMODB: dynamoDb.url,
  AWS_ENDPOINT_URL_SQS: sqs.url,
  AWS_ENDPOINT_URL_SECRETS_MANAGER: secrets.url,
})
