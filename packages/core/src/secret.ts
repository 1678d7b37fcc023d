import {
  CreateSecretCommand,
  DeleteSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  ResourceExistsException,
  ResourceNotFoundException,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import { fault } from './fault.ts'
import { impatient } from './patience.ts'

/** The only code that speaks Secrets Manager. */

const client = new SecretsManagerClient({ requestHandler: impatient })

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
  const put = () => client.send(new PutSecretValueCommand({ SecretId: name, SecretString: value }))
  try {
    await put()
  } catch (error) {
    if (!(error instanceof ResourceNotFoundException)) throw error
    if (!(await createSecret(name, value))) await put()
  }
}

/** Creates a secret with its first value; false where it exists already, and then nothing has changed. */
export async function createSecret(Name: string, SecretString: string): Promise<boolean> {
  // The SDK repeats a lost answer with the same token: whoever has created it hears so.
  try {
    await client.send(new CreateSecretCommand({ Name, SecretString }))
    return true
  } catch (error) {
    if (error instanceof ResourceExistsException) return false
    throw unreachable(error)
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

const unreachable = (cause: unknown) => fault('database_unavailable', { retryAfterSeconds: 2 }, { cause })
