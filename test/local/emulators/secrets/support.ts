import {
  CreateSecretCommand,
  GetSecretValueCommand,
  type GetSecretValueCommandInput,
  PutSecretValueCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import { type SecretsManagerOptions, startSecretsManager } from '@platform/local/emulators/secrets/server'
import { onTestFinished } from 'vitest'

/** A server and its client, both closed after the test. */
export async function serveSecrets(options: SecretsManagerOptions = {}) {
  const server = await startSecretsManager(options)
  onTestFinished(() => server.close())
  return { server, client: secretsClient(server.url) }
}

/** A client that is closed after the test. */
export function secretsClient(endpoint: string, accessKeyId = 'test') {
  const credentials = { accessKeyId, secretAccessKey: 'test' }
  const client = new SecretsManagerClient({ endpoint, region: 'eu-central-1', credentials, maxAttempts: 1 })
  onTestFinished(() => client.destroy())
  return client
}

export const create = (client: SecretsManagerClient, name: string, value = 'first value') =>
  client.send(new CreateSecretCommand({ Name: name, SecretString: value }))

export const put = (client: SecretsManagerClient, name: string, value: string, stages?: string[]) =>
  client.send(new PutSecretValueCommand({ SecretId: name, SecretString: value, VersionStages: stages }))

export const get = (client: SecretsManagerClient, name: string, more: Partial<GetSecretValueCommandInput> = {}) =>
  client.send(new GetSecretValueCommand({ SecretId: name, ...more }))

/** The value of a secret at a stage, `AWSCURRENT` by default. */
export async function valueOf(client: SecretsManagerClient, name: string, stage?: string) {
  return (await get(client, name, stage === undefined ? {} : { VersionStage: stage })).SecretString
}
