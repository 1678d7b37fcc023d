import { createHash, randomUUID } from 'node:crypto'
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import { platformError } from '../error.ts'
import { awsTimeouts, isAws, withTransport } from './sdk.ts'

/** Without `cacheMiddleware`, because the SDK would keep the first secret in memory. */
const client = withTransport(new SecretsManagerClient({ requestHandler: awsTimeouts }))

export async function readSecret(name: string): Promise<string | undefined> {
  try {
    return (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString
  } catch (error) {
    if (isAws(error, 'ResourceNotFoundException')) return undefined
    throw unavailableError(error)
  }
}

export async function writeSecret(name: string, value: string): Promise<void> {
  const put = () =>
    client
      .send(new PutSecretValueCommand({ SecretId: name, SecretString: value, ClientRequestToken: randomUUID() }))
      .catch(rethrowMissing)
  try {
    await put()
  } catch (error) {
    if (!isAws(error, 'ResourceNotFoundException')) throw error
    if (!(await createSecret(name, value))) await put()
  }
}

/** All concurrent writers of a first value use this version id, so that only one of them succeeds. */
const firstVersion = '00000000-0000-4000-8000-000000000001'

/**
 * Returns false, without a change, if the secret already has a value. After a lost response, the SDK retries with the
 * same request token, so the writer still gets true.
 */
export async function createSecretOnce(name: string, value: string): Promise<boolean> {
  const firstValue = { SecretString: value, ClientRequestToken: firstVersion }
  try {
    return await putVersion(name, firstVersion, value)
  } catch (error) {
    if (!isAws(error, 'ResourceNotFoundException')) throw error
    return isFirstWrite(() => client.send(new CreateSecretCommand({ Name: name, ...firstValue })))
  }
}

/**
 * Writes the value that follows `predecessorId`, the id of the current value. Returns false, without a change, if
 * another writer replaced that value.
 */
export function replaceSecretOnce(name: string, predecessorId: string, value: string): Promise<boolean> {
  const digest = createHash('sha256').update(predecessorId).digest('hex')
  return putVersion(name, digest.slice(0, 32), value)
}

const putVersion = (name: string, ClientRequestToken: string, value: string): Promise<boolean> =>
  isFirstWrite(() =>
    client.send(new PutSecretValueCommand({ SecretId: name, SecretString: value, ClientRequestToken })),
  )

export const createSecret = (name: string, value: string): Promise<boolean> =>
  // After a lost response, the SDK retries with the same request token, so the creator still gets true.
  isFirstWrite(() =>
    client.send(new CreateSecretCommand({ Name: name, SecretString: value, ClientRequestToken: randomUUID() })),
  )

async function isFirstWrite(write: () => Promise<unknown>): Promise<boolean> {
  try {
    await write()
    return true
  } catch (error) {
    if (isAws(error, 'ResourceExistsException')) return false
    return rethrowMissing(error)
  }
}

export async function deleteSecret(name: string): Promise<void> {
  try {
    await client.send(new DeleteSecretCommand({ SecretId: name, ForceDeleteWithoutRecovery: true }))
  } catch (error) {
    if (!isAws(error, 'ResourceNotFoundException')) throw unavailableError(error)
  }
}

function rethrowMissing(error: unknown): never {
  throw isAws(error, 'ResourceNotFoundException') ? error : unavailableError(error)
}

const unavailableError = (cause: unknown) => platformError('database_unavailable', { retryAfterSeconds: 2 }, { cause })
