import {
  CreateSecretCommand,
  DeleteSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  ResourceExistsException,
  ResourceNotFoundException,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import { platformError } from '../error.ts'
import { awsTimeouts } from './timeouts.ts'

/** The only code that speaks Secrets Manager. */

const client = new SecretsManagerClient({ requestHandler: awsTimeouts })

/** The current value of a secret, or undefined where there is none yet. */
export async function readSecret(name: string): Promise<string | undefined> {
  try {
    return (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined
    throw unreachable(error)
  }
}

/** Makes a value the current one; the secret is created where it is missing. */
export async function writeSecret(name: string, value: string): Promise<void> {
  const put = () => client.send(new PutSecretValueCommand({ SecretId: name, SecretString: value })).catch(unlessMissing)
  try {
    await put()
  } catch (error) {
    if (!(error instanceof ResourceNotFoundException)) throw error
    if (!(await createSecret(name, value))) await put()
  }
}

/** The same for every secret: of several first values one becomes its version. */
const firstVersion = '00000000-0000-4000-8000-000000000001'

/**
 * Gives a secret its first value, and makes it where no deployment has; false where it has had one already, and then nothing
 * has changed. The SDK repeats a call whose answer was lost: whoever has given the value hears so.
 */
export async function createSecretOnce(name: string, value: string): Promise<boolean> {
  const first = { SecretString: value, ClientRequestToken: firstVersion }
  try {
    return await isFirst(() => client.send(new PutSecretValueCommand({ SecretId: name, ...first })))
  } catch (error) {
    if (!(error instanceof ResourceNotFoundException)) throw error
    return isFirst(() => client.send(new CreateSecretCommand({ Name: name, ...first })))
  }
}

/** Creates a secret with its first value; false where it exists already, and then nothing has changed. */
export const createSecret = (name: string, value: string): Promise<boolean> =>
  // The SDK repeats a lost answer with the same token: whoever has created it hears so.
  isFirst(() => client.send(new CreateSecretCommand({ Name: name, SecretString: value })))

async function isFirst(write: () => Promise<unknown>): Promise<boolean> {
  try {
    await write()
    return true
  } catch (error) {
    if (error instanceof ResourceExistsException) return false
    return unlessMissing(error)
  }
}

/** Removes a secret for good; one that is not there has been removed. */
export async function deleteSecret(name: string): Promise<void> {
  try {
    await client.send(new DeleteSecretCommand({ SecretId: name, ForceDeleteWithoutRecovery: true }))
  } catch (error) {
    if (!(error instanceof ResourceNotFoundException)) throw unreachable(error)
  }
}

/** That a secret is missing is for whoever wrote to decide; with everything else the place is not reachable. */
function unlessMissing(error: unknown): never {
  throw error instanceof ResourceNotFoundException ? error : unreachable(error)
}

const unreachable = (cause: unknown) => platformError('database_unavailable', { retryAfterSeconds: 2 }, { cause })
