import {
  BatchGetSecretValueCommand,
  CreateSecretCommand,
  InvalidParameterException,
  InvalidRequestException,
  ListSecretVersionIdsCommand,
  PutSecretValueCommand,
  ResourceNotFoundException,
  UpdateSecretCommand,
  UpdateSecretVersionStageCommand,
} from '@aws-sdk/client-secrets-manager'
import { expect, test } from 'vitest'
import { create, get, put, serveSecrets, valueOf } from './support.ts'

test('a secret is found by name, by ARN, and by ARN without its suffix', async () => {
  const { client } = await serveSecrets({ region: 'eu-central-1' })
  const created = await create(client, 'app/key', 'value 🚀')
  expect(created.ARN).toMatch(/^arn:aws:secretsmanager:eu-central-1:000000000000:secret:app\/key-\w{6}$/)
  for (const id of ['app/key', created.ARN!, created.ARN!.slice(0, -7)]) {
    expect(await get(client, id)).toMatchObject({
      ARN: created.ARN,
      Name: 'app/key',
      SecretString: 'value 🚀',
      VersionId: created.VersionId,
      VersionStages: ['AWSCURRENT'],
      CreatedDate: expect.any(Date),
    })
  }
})

test('bytes come back as they were', async () => {
  const { client } = await serveSecrets()
  const bytes = new Uint8Array([0, 255, 128])
  await client.send(new CreateSecretCommand({ Name: 'bytes', SecretBinary: bytes }))
  expect((await get(client, 'bytes')).SecretBinary).toEqual(bytes)
})

test('a new value becomes current, the one before previous, and the one before that is deprecated', async () => {
  const { client } = await serveSecrets()
  const first = await create(client, 'key', 'one')
  const second = await put(client, 'key', 'two')
  const third = await put(client, 'key', 'three')
  expect(await valueOf(client, 'key')).toBe('three')
  expect(await valueOf(client, 'key', 'AWSPREVIOUS')).toBe('two')
  expect((await get(client, 'key', { VersionId: first.VersionId })).SecretString).toBe('one')

  const listed = await client.send(new ListSecretVersionIdsCommand({ SecretId: 'key' }))
  expect(listed.Versions).toMatchObject([
    { VersionId: second.VersionId, VersionStages: ['AWSPREVIOUS'] },
    { VersionId: third.VersionId, VersionStages: ['AWSCURRENT'] },
  ])
  const all = await client.send(new ListSecretVersionIdsCommand({ SecretId: 'key', IncludeDeprecated: true }))
  expect(all.Versions).toHaveLength(3)
})

test('a value under a stage of its own leaves the current one alone until the stage moves', async () => {
  const { client } = await serveSecrets()
  const first = await create(client, 'key', 'old')
  const pending = await put(client, 'key', 'new', ['AWSPENDING'])
  expect(await valueOf(client, 'key')).toBe('old')
  expect(await valueOf(client, 'key', 'AWSPENDING')).toBe('new')

  await client.send(
    new UpdateSecretVersionStageCommand({
      SecretId: 'key',
      VersionStage: 'AWSCURRENT',
      MoveToVersionId: pending.VersionId,
      RemoveFromVersionId: first.VersionId,
    }),
  )
  expect(await valueOf(client, 'key')).toBe('new')
  expect(await valueOf(client, 'key', 'AWSPREVIOUS')).toBe('old')
})

test.each([
  ['without naming where it is attached', { to: 'pending', from: undefined }],
  ['naming another version', { to: 'pending', from: 'pending' }],
  ['to nowhere', { to: undefined, from: 'first' }],
] as const)('AWSCURRENT is not moved %s', async (_, { to, from }) => {
  const { client } = await serveSecrets()
  const ids = {
    first: (await create(client, 'key', 'old')).VersionId,
    pending: (await put(client, 'key', 'new', ['AWSPENDING'])).VersionId,
  }
  const move = new UpdateSecretVersionStageCommand({
    SecretId: 'key',
    VersionStage: 'AWSCURRENT',
    MoveToVersionId: to && ids[to],
    RemoveFromVersionId: from && ids[from],
  })
  await expect(client.send(move)).rejects.toBeInstanceOf(InvalidParameterException)
  expect(await valueOf(client, 'key')).toBe('old')
})

test('the first value is current whatever stage it was put under', async () => {
  const { client } = await serveSecrets()
  await client.send(new CreateSecretCommand({ Name: 'empty' }))
  await expect(get(client, 'empty')).rejects.toBeInstanceOf(ResourceNotFoundException)
  await put(client, 'empty', 'value', ['MINE'])
  expect((await get(client, 'empty')).VersionStages).toEqual(['AWSCURRENT', 'MINE'])
})

test('updating changes the description, the value, or both', async () => {
  const { client } = await serveSecrets()
  await create(client, 'key', 'one')
  const described = await client.send(new UpdateSecretCommand({ SecretId: 'key', Description: 'what it is for' }))
  expect(described.VersionId).toBeUndefined()
  const updated = await client.send(new UpdateSecretCommand({ SecretId: 'key', SecretString: 'two' }))
  expect(await get(client, 'key')).toMatchObject({ SecretString: 'two', VersionId: updated.VersionId })
})

test('a batch returns the values that exist and names the others', async () => {
  const { client } = await serveSecrets()
  await create(client, 'one', '1')
  await create(client, 'two', '2')
  const batch = await client.send(new BatchGetSecretValueCommand({ SecretIdList: ['one', 'missing', 'two'] }))
  expect(batch.SecretValues).toMatchObject([
    { Name: 'one', SecretString: '1' },
    { Name: 'two', SecretString: '2' },
  ])
  expect(batch.Errors).toMatchObject([{ SecretId: 'missing', ErrorCode: 'ResourceNotFoundException' }])
})

test('reading a version at a stage that it does not carry is refused', async () => {
  const { client } = await serveSecrets()
  const { VersionId } = await create(client, 'key')
  const read = get(client, 'key', { VersionId, VersionStage: 'AWSPREVIOUS' })
  await expect(read).rejects.toBeInstanceOf(InvalidRequestException)
})

test.each([
  ['a missing secret', 'missing', {}],
  ['a missing version', 'key', { VersionId: 'missing' }],
  ['a missing stage', 'key', { VersionStage: 'NONE' }],
])('reading %s is refused', async (_, name, more) => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(get(client, name, more)).rejects.toBeInstanceOf(ResourceNotFoundException)
})

test.each([
  ['an empty value', { SecretString: '' }, 'ValidationException'],
  ['more than 64 KiB', { SecretString: 'é'.repeat(32_769) }, 'ValidationException'],
  ['a string and bytes', { SecretString: 'x', SecretBinary: new Uint8Array([1]) }, 'InvalidParameterException'],
  ['no value', {}, 'InvalidRequestException'],
  ['a short request token', { SecretString: 'x', ClientRequestToken: 'short' }, 'ValidationException'],
])('putting %s is refused and changes nothing', async (_, value, name) => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  const refused = client.send(new PutSecretValueCommand({ SecretId: 'key', ...value }))
  await expect(refused).rejects.toMatchObject({ name })
  expect(await valueOf(client, 'key')).toBe('first value')
})
