import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  InvalidRequestException,
  ListSecretsCommand,
  type ListSecretsCommandInput,
  PutSecretValueCommand,
  ResourceExistsException,
  ResourceNotFoundException,
  RotateSecretCommand,
} from '@aws-sdk/client-secrets-manager'
import { expect, onTestFinished, test } from 'vitest'
import { runServer } from '../../support/program.ts'
import { temporaryDir } from '../sqs/support.ts'
import { create, get, put, secretsClient, serveSecrets, valueOf } from './support.ts'

test('returns binary values unchanged', async () => {
  const { client } = await serveSecrets()
  const bytes = new Uint8Array([0, 255, 128])
  await client.send(new CreateSecretCommand({ Name: 'bytes', SecretBinary: bytes }))
  expect((await get(client, 'bytes')).SecretBinary).toEqual(bytes)
})

test('a new value becomes AWSCURRENT, and the last one AWSPREVIOUS; older ones remain by id', async () => {
  const { client } = await serveSecrets()
  const first = await create(client, 'key', 'one')
  await put(client, 'key', 'two')
  await put(client, 'key', 'three')
  await put(client, 'key', 'pending', ['AWSPENDING'])
  expect(await valueOf(client, 'key')).toBe('three')
  expect(await valueOf(client, 'key', 'AWSPREVIOUS')).toBe('two')
  expect(await valueOf(client, 'key', 'AWSPENDING')).toBe('pending')
  expect((await get(client, 'key', { VersionId: first.VersionId })).SecretString).toBe('one')
})

test.each([
  ['a missing secret', 'missing', {}],
  ['a missing version', 'key', { VersionId: 'missing' }],
  ['a missing stage', 'key', { VersionStage: 'NONE' }],
])('rejects reading %s', async (_, name, more) => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(get(client, name, more)).rejects.toBeInstanceOf(ResourceNotFoundException)
})

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

test('a request token repeats its write, and rejects another value', async () => {
  const { client } = await serveSecrets()
  const ClientRequestToken = 'a-request-token-of-thirty-two-characters'
  const write = (SecretString: string) =>
    client.send(new PutSecretValueCommand({ SecretId: 'key', SecretString, ClientRequestToken }))
  await create(client, 'key')
  const first = await write('one')
  await put(client, 'key', 'two')
  expect((await write('one')).VersionId).toBe(first.VersionId)
  await expect(write('other')).rejects.toBeInstanceOf(ResourceExistsException)
  expect(await valueOf(client, 'key')).toBe('two')
})

test.each([
  ['an empty value', { SecretString: '' }, 'ValidationException'],
  ['more than 64 KiB', { SecretString: 'é'.repeat(32_769) }, 'ValidationException'],
  ['no value', {}, 'InvalidRequestException'],
])('rejects %s', async (_, value, name) => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(client.send(new PutSecretValueCommand({ SecretId: 'key', ...value }))).rejects.toMatchObject({ name })
  expect(await valueOf(client, 'key')).toBe('first value')
})

test('a deleted secret is hidden, and its name is free after the recovery window', async () => {
  let nowMs = Date.now()
  const { client } = await serveSecrets({ nowMs: () => nowMs })
  await create(client, 'key')
  await client.send(new DeleteSecretCommand({ SecretId: 'key', RecoveryWindowInDays: 7 }))
  await expect(get(client, 'key')).rejects.toBeInstanceOf(InvalidRequestException)
  await expect(create(client, 'key')).rejects.toBeInstanceOf(InvalidRequestException)
  nowMs += 7 * 86_400_000 + 1
  await create(client, 'key', 'another value')
  await client.send(new DeleteSecretCommand({ SecretId: 'key', ForceDeleteWithoutRecovery: true }))
  await create(client, 'key', 'third value')
  expect(await valueOf(client, 'key')).toBe('third value')
})

test('lists secrets by name prefix in pages without their values, and rejects other actions', async () => {
  const { client } = await serveSecrets()
  for (const name of ['app/one', 'app/two', 'other']) await create(client, name, 'the value')
  const list = async (input: ListSecretsCommandInput) => {
    const { SecretList = [], NextToken } = await client.send(new ListSecretsCommand(input))
    expect(JSON.stringify(SecretList)).not.toContain('the value')
    return { names: SecretList.map(({ Name }) => Name), NextToken }
  }
  expect((await list({ Filters: [{ Key: 'name', Values: ['app/'] }] })).names).toEqual(['app/one', 'app/two'])
  const { NextToken } = await list({ MaxResults: 2 })
  expect((await list({ MaxResults: 2, NextToken })).names).toEqual(['other'])
  const rotate = client.send(new RotateSecretCommand({ SecretId: 'other' }))
  await expect(rotate).rejects.toMatchObject({ name: 'UnknownOperationException' })
})

/** A server that can be killed. */
async function startServer() {
  const dataDir = await temporaryDir()
  const server = await runServer('secrets', dataDir)
  onTestFinished(() => server[Symbol.asyncDispose]())
  return { dataDir, kill: () => server[Symbol.asyncDispose](), client: secretsClient(server.address) }
}

test('a kill under load loses no acknowledged value', async () => {
  const { dataDir, kill, client } = await startServer()
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
  await kill()
  await load

  const restarted = await serveSecrets({ dataDir })
  for (const name of names) {
    const last = acknowledged.get(name)!
    expect([last, last + 1]).toContain(Number(await valueOf(restarted.client, name)))
    expect(Number(await valueOf(restarted.client, name, 'AWSPREVIOUS'))).toBeGreaterThanOrEqual(last - 1)
  }
})

test('request tokens and stages survive a restart', async () => {
  const dataDir = await temporaryDir()
  const first = await serveSecrets({ dataDir })
  await create(first.client, 'key', 'one')
  const { VersionId } = await put(first.client, 'key', 'two')
  await put(first.client, 'key', 'three')
  await first.server.close()

  const { client } = await serveSecrets({ dataDir })
  const repeated = { SecretId: 'key', SecretString: 'two', ClientRequestToken: VersionId }
  expect(await client.send(new PutSecretValueCommand(repeated))).toMatchObject({
    VersionId,
    VersionStages: ['AWSPREVIOUS'],
  })
  expect(await valueOf(client, 'key')).toBe('three')
})

test('a change replaces the file', async () => {
  const dataDir = await temporaryDir()
  const { client } = await serveSecrets({ dataDir })
  await create(client, 'key')
  const before = await stat(join(dataDir, 'secrets.json'))
  await put(client, 'key', 'another value')
  expect((await stat(join(dataDir, 'secrets.json'))).ino).not.toBe(before.ino)
})

test('only the owner can read the file, and a partial draft is ignored', async () => {
  const dataDir = join(await temporaryDir(), 'new')
  const first = await serveSecrets({ dataDir })
  await create(first.client, 'key')
  await first.server.close()
  expect((await stat(dataDir)).mode & 0o777).toBe(0o700)
  for (const file of await readdir(dataDir)) expect((await stat(join(dataDir, file))).mode & 0o777).toBe(0o600)

  await writeFile(join(dataDir, 'secrets.json.tmp'), '[{"ARN":')
  const { client } = await serveSecrets({ dataDir })
  expect(await valueOf(client, 'key')).toBe('first value')
  await put(client, 'key', 'second value')
  expect(await valueOf(client, 'key')).toBe('second value')
})

test('rejects requests signed with another access key', async () => {
  const { server } = await serveSecrets({ accessKeyId: 'the-key' })
  const other = secretsClient(server.url, 'another-key')
  await expect(create(other, 'key')).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
  await create(secretsClient(server.url, 'the-key'), 'key')
})
