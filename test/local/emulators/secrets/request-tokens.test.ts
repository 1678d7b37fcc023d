import {
  CreateSecretCommand,
  DescribeSecretCommand,
  PutSecretValueCommand,
  ResourceExistsException,
  type SecretsManagerClient,
  UpdateSecretCommand,
} from '@aws-sdk/client-secrets-manager'
import { expect, test } from 'vitest'
import { put, serveSecrets, valueOf } from './support.ts'

/** The calls that carry a request token. */
const writes: [string, (client: SecretsManagerClient, value: string) => Promise<{ VersionId?: string | undefined }>][] =
  [
    ['creating', (client, value) => client.send(new CreateSecretCommand({ Name: 'key', ...withToken(value) }))],
    ['putting', (client, value) => client.send(new PutSecretValueCommand({ SecretId: 'key', ...withToken(value) }))],
    ['updating', (client, value) => client.send(new UpdateSecretCommand({ SecretId: 'key', ...withToken(value) }))],
  ]

function withToken(value: string) {
  return { SecretString: value, ClientRequestToken: 'a-request-token-of-thirty-two-characters' }
}

test.each(writes)('%s again with the same request token and value changes nothing', async (_, write) => {
  const { client } = await serveSecrets()
  const created = await client.send(new CreateSecretCommand({ Name: 'key', ...withToken('one') }))
  await put(client, 'key', 'two')
  expect((await write(client, 'one')).VersionId).toBe(created.VersionId)
  expect(await valueOf(client, 'key')).toBe('two')
})

test.each(writes)('%s with a used request token and another value is refused', async (_, write) => {
  const { client } = await serveSecrets()
  await client.send(new CreateSecretCommand({ Name: 'key', ...withToken('one') }))
  await expect(write(client, 'other')).rejects.toBeInstanceOf(ResourceExistsException)
  expect(await valueOf(client, 'key')).toBe('one')
})

test('a refused update changes nothing', async () => {
  const { client } = await serveSecrets()
  await client.send(new CreateSecretCommand({ Name: 'key', ...withToken('one') }))
  const update = new UpdateSecretCommand({ SecretId: 'key', Description: 'new', ...withToken('other') })
  await expect(client.send(update)).rejects.toBeInstanceOf(ResourceExistsException)
  expect((await client.send(new DescribeSecretCommand({ SecretId: 'key' }))).Description).toBeUndefined()
})
