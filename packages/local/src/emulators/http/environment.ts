import { randomBytes } from 'node:crypto'

/** The account and the region that stand in resource names on one machine. */
export const localAccountId = '000000000000'
export const localRegion = 'us-east-1'

/** Where the stand-ins listen, and the access key that they answer to. */
export interface StandIns {
  dynamoDbUrl: string
  sqsUrl: string
  secretsUrl: string
  accessKeyId: string
}

/** An access key of this start only: another start, or another program on the machine, does not know it. */
export const newAccessKeyId = (): string => `LOCAL${randomBytes(16).toString('hex').toUpperCase()}`

const secretAccessKey = 'signatures-are-not-verified'

/** Settings of an SDK client in this process: nothing comes from the machine's own AWS environment. */
export const clientSettings = (endpoint: string, accessKeyId: string) => ({
  endpoint,
  region: localRegion,
  credentials: { accessKeyId, secretAccessKey },
})

/** What a request without an SDK needs where a stand-in asks for its access key, such as one that switches faults. */
export const signedHeaders = (accessKeyId: string): Record<string, string> => ({
  'content-type': 'application/json',
  authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/`,
})

/** The environment in which an SDK of another thread reaches the stand-ins, and nothing else. */
export const awsEnvironment = (standIns: StandIns): Record<string, string> => ({
  AWS_REGION: localRegion,
  AWS_ACCESS_KEY_ID: standIns.accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  AWS_ENDPOINT_URL_DYNAMODB: standIns.dynamoDbUrl,
  AWS_ENDPOINT_URL_SQS: standIns.sqsUrl,
  AWS_ENDPOINT_URL_SECRETS_MANAGER: standIns.secretsUrl,
  // The machine's profiles could name another endpoint or another account.
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_EC2_METADATA_DISABLED: 'true',
})
