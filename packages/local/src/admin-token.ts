import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from './emulators/http/environment.ts'
import type { RuntimeFile } from './runtime-file.ts'

/** Reads the initial admin token of a running platform. Rejects if there is none. */
export async function readAdminToken({ secretsUrl, accessKeyId, adminTokenSecret }: RuntimeFile): Promise<string> {
  const client = new SecretsManagerClient(clientSettings(secretsUrl, accessKeyId))
  const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId: adminTokenSecret }))
  client.destroy()
  if (SecretString === undefined) throw new Error('The platform has no initial admin token. Restart it.')
  return SecretString
}
