import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  ResourceExistsException,
  ResourceNotFoundException,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager'
import { type SecretsManagerOptions, startSecretsManager } from '@platform/local/emulators/secrets/server'
import { expect, onTestFinished, test } from 'vitest'
import { runServer } from '../support/program.ts'
import { temporaryDir } from './sqs/support.ts'

async function serveSecrets(options: SecretsManagerOptions = {}) {
  const server = await startSecretsManager(options)
  onTestFinished(() => server.close())
  return { server, client: secretsClient(server.url) }
}

function secretsClient(endpoint: string) {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  const client = new SecretsManagerClient({ endpoint, region: 'eu-central-1', credentials, maxAttempts: 1 })
  onTestFinished(() => client.destroy())
  return client
}

const create = (client: SecretsManagerClient, Name: string, SecretString = 'first value') =>
  client.send(new CreateSecretCommand({ Name, SecretString }))

const put = (client: SecretsManagerClient, SecretId: string, SecretString: string, ClientRequestToken?: string) =>
  client.send(new PutSecretValueCommand({ SecretId, SecretString, ClientRequestToken }))

const get = (client: SecretsManagerClient, SecretId: string) => client.send(new GetSecretValueCommand({ SecretId }))
const valueOf = async (client: SecretsManagerClient, name: string) => (await get(client, name)).SecretString

test('finds a secret by name, by ARN, and by ARN without its suffix', async () => {
  const { client } = await serveSecrets({ region: 'eu-central-1' })
  const { ARN, VersionId } = await create(client, 'app/key', 'value 🚀')
  expect(ARN).toMatch(/^arn:aws:secretsmanager:eu-central-1:000000000000:secret:app\/key-\w{6}$/)
  for (const id of ['app/key', ARN!, ARN!.slice(0, -7)]) {
    const expected = { ARN, Name: 'app/key', SecretString: 'value 🚀', VersionId, VersionStages: ['AWSCURRENT'] }
    expect(await get(client, id)).toMatchObject(expected)
  }
  await expect(create(client, 'app/key')).rejects.toBeInstanceOf(ResourceExistsException)
})

test('a deleted secret is missing, and its name is free', async () => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await client.send(new DeleteSecretCommand({ SecretId: 'key', ForceDeleteWithoutRecovery: true }))
  await expect(get(client, 'key')).rejects.toBeInstanceOf(ResourceNotFoundException)
  await create(client, 'key', 'another value')
  expect(await valueOf(client, 'key')).toBe('another value')
})

test('a request token repeats its write, also after a restart, and rejects another value', async () => {
  const dataDir = await temporaryDir()
  const token = 'a-request-token-of-thirty-two-characters'
  const firstServer = await serveSecrets({ dataDir })
  await create(firstServer.client, 'key')
  const { VersionId } = await put(firstServer.client, 'key', 'one', token)
  await put(firstServer.client, 'key', 'two')
  await firstServer.server.close()

  const { client } = await serveSecrets({ dataDir })
  expect(await put(client, 'key', 'one', token)).toMatchObject({ VersionId, VersionStages: ['AWSPREVIOUS'] })
  await expect(put(client, 'key', 'other', token)).rejects.toBeInstanceOf(ResourceExistsException)
  expect(await valueOf(client, 'key')).toBe('two')
})

test('a kill under load loses no acknowledged value', async () => {
  const dataDir = await temporaryDir()
  await using server = await runServer('secrets', dataDir)
  const client = secretsClient(server.address)
  const names = ['one', 'two', 'three', 'four']
  const acknowledged = new Map<string, number>()
  const load = Promise.all(
    names.map(async (name) => {
      await create(client, name, '0')
      try {
        for (let value = 1; ; value++) {
          await put(client, name, String(value))
          acknowledged.set(name, value)
        }
      } catch {
        // The server was killed.
      }
    }),
  )
  await expect
    .poll(() => Math.min(...names.map((name) => acknowledged.get(name) ?? 0)), { timeout: 20_000 })
    .toBeGreaterThan(20)
  server.child.kill('SIGKILL')
  await load

  const restartedSecrets = await serveSecrets({ dataDir })
  for (const name of names) {
    const lastValue = acknowledged.get(name)!
    expect([lastValue, lastValue + 1]).toContain(Number(await valueOf(restartedSecrets.client, name)))
  }
})

test('only the owner can read the file, and a partial draft is ignored', async () => {
  const dataDir = join(await temporaryDir(), 'new')
  const firstServer = await serveSecrets({ dataDir })
  await create(firstServer.client, 'key')
  await firstServer.server.close()
  expect((await stat(dataDir)).mode & 0o777).toBe(0o700)
  for (const file of await readdir(dataDir)) expect((await stat(join(dataDir, file))).mode & 0o777).toBe(0o600)

  await writeFile(join(dataDir, 'secrets.json.tmp'), '[{"ARN":')
  const { client } = await serveSecrets({ dataDir })
  expect(await valueOf(client, 'key')).toBe('first value')
  await put(client, 'key', 'second value')
  expect(await valueOf(client, 'key')).toBe('second value')
})
