import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from '@platform/local/aws-environment'

/** The value of a secret of a rehearsal, as an operator reads it: roles of functions do not count. Rejects when it is absent. */
export async function readSecret(secretsUrl: string, name: string): Promise<string | undefined> {
  const client = new SecretsManagerClient(clientSettings(secretsUrl, 'operator'))
  try {
    return (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString
  } finally {
    client.destroy()
  }
}
