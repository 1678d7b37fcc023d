import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CreateSecretCommand, GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { clientSettings } from '../../../packages/local/src/emulators/http/environment.ts'
import { readRuntimeFile } from '../../../packages/local/src/runtime-file.ts'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import type { PlatformProcess } from '../../support/platform.ts'
import { runRelayCommand } from '../../support/relay-command.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { waitFor } from '../../support/wait-for.ts'
import { randomSecret, type Secret } from './search.ts'

const providers = '/api/v1/platform/identity/providers'
/** An allowed address where no server listens. */
const unreachableAddress = '127.0.0.1:9'

/** Configures identity providers with secrets, and tests them while they are unreachable. */
export async function exerciseProviders(api: Platform): Promise<Secret[]> {
  const admin = await api.admin
  const [clientSecret, bindPassword] = [randomSecret('client'), randomSecret('bind')]
  const base = 'dc=example,dc=com'
  const ldap = { url: `ldap://${unreachableAddress}`, bindDn: `cn=admin,${base}`, userSearchBase: base, startTls: true }
  for (const provider of [
    { type: 'OIDC', issuer: `http://${unreachableAddress}`, clientId: 'platform', clientSecret, displayName: 'canary' },
    { type: 'LDAP', ...ldap, bindPassword, displayName: 'canary' },
  ]) {
    const { id } = expectStatus(await admin.post(providers, provider), 201)
    expectStatus(await admin.post(`${providers}/${id}/test`), 200)
  }
  return [
    { kind: 'client secret', text: clientSecret },
    { kind: 'bind password', text: bindPassword },
  ]
}

export async function exercisePlatformSecrets(platform: PlatformProcess, api: Platform): Promise<Secret[]> {
  const { secretsUrl, accessKeyId, registry } = await readRuntimeFile(platform.dataDir)
  const client = new SecretsManagerClient(clientSettings(secretsUrl, accessKeyId))
  const password = randomSecret('registry')
  const SecretString = JSON.stringify({ [unreachableAddress]: { username: 'canary', password } })
  await client.send(new CreateSecretCommand({ Name: 'platform/registries', SecretString }))
  const names = ['access-keys', 'module-token-keys', 'statement-keys', 'webhook-key', 'module-key']
  const read = names.map((name) => client.send(new GetSecretValueCommand({ SecretId: `platform/${name}` })))
  const [access = '', moduleTokens = '', statement = '', ...rootKeys] = (await Promise.all(read)).map(
    (each) => each.SecretString ?? '',
  )
  client.destroy()
  const admin = await api.admin
  await admin.attempt('POST', '/api/modules/install', {
    json: { imageRef: `${unreachableAddress}/modules/canary:1.0.0` },
  })
  const privateKeyParameters = [...`${access}${moduleTokens}${statement}`.matchAll(/"d":"([\w-]{30,})"/g)].map(
    ([, parameter = '']) => parameter,
  )
  return [
    { kind: 'registry password', text: password },
    { kind: 'password of the embedded registry', text: registry.password },
    ...[...privateKeyParameters, ...rootKeys].map((text) => ({ kind: 'signing key', text })),
  ]
}

/** Runs a script on a real relay. Returns the relay's private key in two encodings, and the relay's output. */
export async function exerciseRelay(api: Platform): Promise<{ secrets: Secret[]; output: string }> {
  await using folder = await temporaryFolder()
  const cluster = await api.newCluster()
  await using relay = runRelayCommand(cluster.relayCommand, folder.path)
  const jobId = await api.submit(cluster.id, { script: 'echo done' })
  await waitFor('the script has run', async () => (await api.job(jobId)).status === 'Completed')
  // A running relay moves and removes its files.
  await relay.kill()
  const entries = await readdir(folder.path, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  const files = await Promise.all(paths.map((path) => readFile(path, 'utf8')))
  const keys = [...files.join('\n').matchAll(/PRIVATE KEY-----\n([\w+/=]{40,})\n/g)].map(([, key = '']) => key)
  const privateBytes = keys.map((key) => Buffer.from(key, 'base64').subarray(-32).toString('base64url'))
  const secrets = [...keys, ...privateBytes].map((text) => ({ kind: 'private key of a relay', text }))
  return { secrets, output: relay.text }
}
