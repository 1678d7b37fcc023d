import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { platformError } from '../error.ts'
import { awsTimeouts } from '../aws/timeouts.ts'

/** One connection per process. Timeouts are short: a caller waits at most a few seconds for a store that is away. */
export const client: DynamoDBDocumentClient = DynamoDBDocumentClient.from(
  new DynamoDBClient({ maxAttempts: 4, requestHandler: awsTimeouts }),
  { marshallOptions: { removeUndefinedValues: true } },
)

const transient = new Set([
  'ProvisionedThroughputExceededException',
  'ThrottlingException',
  'RequestLimitExceeded',
  'InternalServerError',
  'ServiceUnavailable',
  'TimeoutError',
  'ResourceNotFoundException',
  'TransactionInProgressException',
])

// Errors of the network carry a code such as ECONNRESET; those of the store a name. Mistakes in a call are ERR_….
const isOfNetwork = (error: Error): boolean =>
  'code' in error && typeof error.code === 'string' && /^E(?!RR_)[A-Z_]+$/.test(error.code)

const isTransient = (error: unknown): boolean =>
  error instanceof Error && (transient.has(error.name) || isOfNetwork(error) || error.name.startsWith('AbortError'))

/** Says "the store is not reachable" for what may pass by itself; anything else stays the defect that it is. */
export async function callStore<Answer>(call: Promise<Answer>): Promise<Answer> {
  try {
    return await call
  } catch (error) {
    if (!isTransient(error)) throw error
    throw platformError('database_unavailable', { retryAfterSeconds: 2 }, { cause: error })
  }
}
