/** `npm run -s admin-token`: prints only the initial admin token of the running platform. */
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from '../emulators/http/environment.ts'
import { readRuntimeFile, type RuntimeFile } from '../runtime-file.ts'
import { parseSettings } from '../settings.ts'

async function findPlatformInSetup(): Promise<RuntimeFile> {
  const { dataDir } = parseSettings(process.env)
  const runtime = await readRuntimeFile(dataDir).catch(() => undefined)
  const response = runtime && (await fetch(`${runtime.apiUrl}/api/v1/setup/status`).catch(() => undefined))
  if (runtime === undefined || response === undefined) {
    throw new Error(`No platform runs on the data in ${dataDir}. Start it with: npm start`)
  }
  if (response.status === 403) throw new Error('Setup is complete: there is no initial admin token.')
  if (!response.ok) throw new Error(`The platform at ${runtime.apiUrl} is not ready: it returned ${response.status}.`)
  return runtime
}

async function readToken({ secretsUrl, accessKeyId, adminTokenSecret }: RuntimeFile): Promise<string> {
  const client = new SecretsManagerClient(clientSettings(secretsUrl, accessKeyId))
  const { SecretString } = await client.send(new GetSecretValueCommand({ SecretId: adminTokenSecret }))
  client.destroy()
  if (SecretString === undefined) throw new Error('The platform has no initial admin token. Restart it.')
  return SecretString
}

try {
  console.log(await readToken(await findPlatformInSetup()))
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
