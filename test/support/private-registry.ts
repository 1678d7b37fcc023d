import { PutSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from '@platform/local/emulators/http/environment'
import type { Simulator } from '../simulator/simulator.ts'
import { startServer } from './http-server.ts'

const credentials = { username: 'reader', password: 'correct horse battery' }
const expected = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`

/** A read-only registry with a password, in front of a public one. */
export const startPrivateRegistry = (publicHost: string) =>
  startServer(async ({ method, url, headers: { authorization, accept = '*/*' } }) => {
    if (authorization !== expected) return { status: 401, headers: { 'www-authenticate': 'Basic realm="private"' } }
    const address = `http://${publicHost}${url.pathname}${url.search}`
    const response = await fetch(address, { method, headers: { accept } })
    const headers = Object.fromEntries(response.headers)
    return { status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) }
  })

/** Gives the simulated platform the credentials of the registry. */
export async function giveCredentials({ cloud, functions }: Simulator, { host }: { host: string }): Promise<void> {
  const secrets = new SecretsManagerClient(clientSettings(cloud.secretsUrl, cloud.accessKeyId))
  const SecretId = functions[0]?.environment['PLAT_SECRET_REGISTRIES']
  const SecretString = JSON.stringify({ [host]: credentials })
  await secrets.send(new PutSecretValueCommand({ SecretId, SecretString }))
  secrets.destroy()
}
