import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PutSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from '@platform/local/emulators/http/environment'
import type { Simulator } from '../simulator/simulator.ts'

/** A registry that shows nothing to whoever does not know its password, in front of one that does. */
export interface PrivateRegistry extends AsyncDisposable {
  host: string
  /** As the secret of registries has them. */
  credentials: { username: string; password: string }
}

export async function startPrivateRegistry(publicHost: string): Promise<PrivateRegistry> {
  const credentials = { username: 'reader', password: 'correct horse battery' }
  const wanted = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
  const server = createServer((request, response) => {
    const { authorization, ...headers } = request.headers
    if (authorization !== wanted) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="private"' }).end()
      return
    }
    const options = { method: request.method, headers: { ...headers, host: publicHost } }
    const outgoing = send(`http://${publicHost}${request.url}`, options, (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.headers)
      incoming.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    request.pipe(outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    host: `127.0.0.1:${port}`,
    credentials,
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** Lets the simulated platform in, as an operator of a deployment does. */
export async function giveCredentials(
  { cloud, functions }: Simulator,
  { host, credentials }: PrivateRegistry,
): Promise<void> {
  const secrets = new SecretsManagerClient(clientSettings(cloud.secretsUrl, cloud.accessKeyId))
  const SecretId = functions[0]?.environment['PLAT_SECRET_REGISTRIES']
  const SecretString = JSON.stringify({ [host]: credentials })
  await secrets.send(new PutSecretValueCommand({ SecretId, SecretString }))
  secrets.destroy()
}
