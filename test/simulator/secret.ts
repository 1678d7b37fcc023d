import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { CliError } from '@platform/cli/exit'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { findSimulator } from './state.ts'

export async function readSecret(
  { secretsUrl, accessKeyId }: { secretsUrl: string; accessKeyId: string },
  name: string,
): Promise<string | undefined> {
  const client = new SecretsManagerClient(clientSettings(secretsUrl, accessKeyId))
  try {
    return (await client.send(new GetSecretValueCommand({ SecretId: name }))).SecretString
  } finally {
    client.destroy()
  }
}

/**
 * Returns the initial admin token. Throws `CliError` if no simulator is ready, setup is complete or no token exists
 * yet.
 */
export async function initialAdminToken(folder: string): Promise<string> {
  const { ready } = findSimulator(folder) ?? {}
  if (ready === undefined) throw new CliError('refused', 'No simulator is ready. Start one with: npm run simulate')
  const { status } = await fetch(`${ready.url}/api/v1/setup/status`)
  if (status === 403) throw new CliError('refused', 'Setup is complete: the initial admin token is no longer valid.')
  const token = await readSecret(ready, ready.initialAdminTokenSecret)
  if (token === undefined) throw new CliError('refused', 'The platform has not created an initial admin token.')
  return token
}
