import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from '@platform/local/emulators/http/environment'

interface Secrets {
  secretsUrl: string
  accessKeyId: string
}

/** A secret as an operator reads it, without the roles of functions. Rejects when it is absent. */
export async function readSecret(secrets: Secrets, name: string): Promise<string | undefined> {
  const client = new SecretsManagerClient(clientSettings(secrets.secretsUrl, secrets.accessKeyId))
  try {
    return (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString
  } finally {
    client.destroy()
  }
}
