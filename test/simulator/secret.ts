import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from '@platform/local/emulators/http/environment'

/** Where the secrets of a rehearsal are, and what they are asked with. */
interface Secrets {
  secretsUrl: string
  accessKeyId: string
}

/** The value of a secret of a rehearsal, as an operator reads it: roles of functions do not count. Rejects when it is absent. */
export async function readSecret(secrets: Secrets, name: string): Promise<string | undefined> {
  const client = new SecretsManagerClient(clientSettings(secrets.secretsUrl, secrets.accessKeyId))
  try {
    return (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString
  } finally {
    client.destroy()
  }
}
