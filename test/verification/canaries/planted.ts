import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CreateSecretCommand, GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { expectStatus } from '../../conformance/support/answer.ts'
import type { Platform } from '../../conformance/support/platform.ts'
import { waitFor } from '../../support/wait-for.ts'
import { clientSettings } from '../../../packages/local/src/emulators/http/environment.ts'
import { readRuntimeFile } from '../../../packages/local/src/runtime-file.ts'
import { randomSecret } from './random-secret.ts'
import type { PlatformProcess } from '../../support/platform.ts'
import { runRelayCommand } from '../../support/relay-command.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import type { Secret } from './needles.ts'

const providers = '/api/v1/platform/identity/providers'
/** Nobody listens there. */
const nowhere = '127.0.0.1:9'

/** Sets up what needs a secret of somebody else's, and fails to use it. */
export async function plantProviders(api: Platform): Promise<Secret[]> {
  const admin = await api.admin
  const [clientSecret, bindPassword] = [randomSecret('client'), randomSecret('bind')]
  const oidc = { type: 'OIDC', issuer: `http://${nowhere}`, clientId: 'platform', clientSecret, displayName: 'canary' }
  const base = 'dc=example,dc=com'
  const ldap = {
    type: 'LDAP',
    url: `ldap://${nowhere}`,
    bindDn: `cn=admin,${base}`,
    userSearchBase: base,
    bindPassword,
    startTls: true,
    displayName: 'canary',
  }
  for (const request of [oidc, ldap]) {
    const { id } = expectStatus(await admin.post(providers, request), 201)
    expectStatus(await admin.post(`${providers}/${id}/test`), 200)
  }
  return [
    { kind: 'client secret', text: clientSecret },
    { kind: 'bind password', text: bindPassword },
  ]
}

/** Credentials of a registry that is away, and an installation that would need them; and what the platform keeps for itself. */
export async function plantKept(platform: PlatformProcess, api: Platform): Promise<Secret[]> {
  const { secretsUrl, accessKeyId, signingKeysSecret, registry } = await readRuntimeFile(platform.dataDir)
  const client = new SecretsManagerClient(clientSettings(secretsUrl, accessKeyId))
  const password = randomSecret('registry')
  const SecretString = JSON.stringify({ [nowhere]: { username: 'canary', password } })
  await client.send(new CreateSecretCommand({ Name: 'platform/registries', SecretString }))
  const SecretId = signingKeysSecret ?? 'platform/signing-keys'
  const { SecretString: keys = '' } = await client.send(new GetSecretValueCommand({ SecretId }))
  client.destroy()
  const admin = await api.admin
  await admin.attempt('POST', '/api/modules/install', { json: { imageRef: `${nowhere}/modules/canary:1.0.0` } })
  return [
    { kind: 'registry password', text: password },
    { kind: 'password of the embedded registry', text: registry.password },
    ...privateParts(keys).map((text) => ({ kind: 'signing key', text })),
  ]
}

/** The private numbers of JSON Web Keys, wherever they stand. */
const privateParts = (text: string): string[] => [...text.matchAll(/"d":"([\w-]{30,})"/g)].map(([, d = '']) => d)

/** A real relay that runs a script; answers all that it has written, and its key. */
export async function plantRelay(api: Platform): Promise<{ secrets: Secret[]; written: string }> {
  await using folder = await temporaryFolder()
  const cluster = await api.newCluster()
  await using relay = runRelayCommand(cluster.relayCommand, folder.path)
  const jobId = await api.submit(cluster.id, { script: 'echo done' })
  await waitFor('the script has run', async () => (await api.job(jobId)).status === 'Completed')
  // A relay that runs moves and removes its files while they are read.
  await relay.kill()
  const names = await readdir(folder.path, { recursive: true, withFileTypes: true })
  const files = await Promise.all(
    names.filter((entry) => entry.isFile()).map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8')),
  )
  const keys = files.flatMap((text) =>
    [...text.matchAll(/PRIVATE KEY-----\n([\w+/=]{40,})\n/g)].map(([, key = '']) => key),
  )
  const privateBytes = keys.map((key) => Buffer.from(key, 'base64').subarray(-32).toString('base64url'))
  return {
    secrets: [...keys, ...privateBytes].map((text) => ({ kind: 'private key of a relay', text })),
    written: relay.text,
  }
}
