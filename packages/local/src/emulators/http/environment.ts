import { randomBytes } from 'node:crypto'

/** Account id and region in the ARNs of a one-machine platform. */
export const localAccountId = '000000000000'
export const localRegion = 'us-east-1'

export interface EmulatorAddresses {
  dynamoDbUrl: string
  sqsUrl: string
  secretsUrl: string
  accessKeyId: string
}

/** Returns a random key, so that programs of other users cannot call the emulators. */
export const newAccessKeyId = (): string => `LOCAL${randomBytes(16).toString('hex').toUpperCase()}`

const secretAccessKey = 'signatures-are-not-verified'

/** Settings of an SDK client that ignore the AWS configuration of the machine. */
export const clientSettings = (endpoint: string, accessKeyId: string) => ({
  endpoint,
  region: localRegion,
  credentials: { accessKeyId, secretAccessKey },
})

/** Environment variables for other threads, with which the AWS SDK reaches only the emulators. */
export const awsEnvironment = (emulators: EmulatorAddresses): Record<string, string> => ({
  AWS_REGION: localRegion,
  AWS_ACCESS_KEY_ID: emulators.accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  AWS_ENDPOINT_URL_DYNAMODB: emulators.dynamoDbUrl,
  AWS_ENDPOINT_URL_SQS: emulators.sqsUrl,
  AWS_ENDPOINT_URL_SECRETS_MANAGER: emulators.secretsUrl,
  // The machine's profiles could name another endpoint or account.
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_EC2_METADATA_DISABLED: 'true',
})
