import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PutSecretValueCommand } from '@aws-sdk/client-secrets-manager'
import { expect, onTestFinished, test } from 'vitest'
import { create, put, secretsClient, serveSecrets, temporaryFolder, valueOf } from './support.ts'

/** A server in a process of its own that can be killed. */
async function startProcess() {
  const dataDir = await temporaryFolder()
  const server = fork(new URL('serve.ts', import.meta.url), [dataDir])
  const kill = async () => {
    if (server.kill('SIGKILL')) await once(server, 'exit')
  }
  onTestFinished(kill)
  const [url] = await once(server, 'message')
  return { dataDir, kill, client: secretsClient(url) }
}

test('a kill under load loses no value that was acknowledged', async () => {
  const { dataDir, kill, client } = await startProcess()
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
  const dataDir = await temporaryFolder()
  const first = await serveSecrets({ dataDir })
  await create(first.client, 'key', 'one')
  const { VersionId } = await put(first.client, 'key', 'two')
  await put(first.client, 'key', 'three')
  await first.server.close()

  const { client } = await serveSecrets({ dataDir })
  const again = { SecretId: 'key', SecretString: 'two', ClientRequestToken: VersionId }
  expect(await client.send(new PutSecretValueCommand(again))).toMatchObject({
    VersionId,
    VersionStages: ['AWSPREVIOUS'],
  })
  expect(await valueOf(client, 'key')).toBe('three')
})

test('a change replaces the file whole instead of writing into it', async () => {
  const dataDir = await temporaryFolder()
  const { client } = await serveSecrets({ dataDir })
  await create(client, 'key')
  const before = await stat(join(dataDir, 'secrets.json'))
  await put(client, 'key', 'another value')
  expect((await stat(join(dataDir, 'secrets.json'))).ino).not.toBe(before.ino)
})

test('only the owner can read the file, and a half-written one beside it does no harm', async () => {
  const dataDir = join(await temporaryFolder(), 'new')
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

test('with an access key set, requests of other signers are refused', async () => {
  const { server } = await serveSecrets({ accessKeyId: 'the-key' })
  const stranger = secretsClient(server.url, 'another-key')
  await expect(create(stranger, 'key')).rejects.toMatchObject({ name: 'UnrecognizedClientException' })
  await create(secretsClient(server.url, 'the-key'), 'key')
})
