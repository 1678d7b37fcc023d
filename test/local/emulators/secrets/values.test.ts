import {
  BatchGetSecretValueCommand,
  CreateSecretCommand,
  DeleteSecretCommand,
  DescribeSecretCommand,
  GetRandomPasswordCommand,
  InvalidRequestException,
  ListSecretsCommand,
  ListSecretVersionIdsCommand,
  PutSecretValueCommand,
  ResourceExistsException,
  ResourceNotFoundException,
  RestoreSecretCommand,
  RotateSecretCommand,
  TagResourceCommand,
  UntagResourceCommand,
  UpdateSecretCommand,
  UpdateSecretVersionStageCommand,
} from '@aws-sdk/client-secrets-manager'
import { expect, test } from 'vitest'
import { create, get, namesOf, put, serveSecrets, valueOf } from './support.ts'

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

test.each([
  ['a missing secret', 'missing', {}],
  ['a missing version', 'key', { VersionId: 'missing' }],
  ['a missing stage', 'key', { VersionStage: 'NONE' }],
])('reading %s is refused', async (_, name, more) => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(get(client, name, more)).rejects.toBeInstanceOf(ResourceNotFoundException)
})

test('a secret is found by name, by ARN, and by ARN without its suffix', async () => {
  const { client } = await serveSecrets({ region: 'eu-central-1' })
  const { ARN, VersionId } = await create(client, 'app/key', 'value 🚀')
  expect(ARN).toMatch(/^arn:aws:secretsmanager:eu-central-1:000000000000:secret:app\/key-\w{6}$/)
  for (const id of ['app/key', ARN!, ARN!.slice(0, -7)]) {
    const expected = { ARN, Name: 'app/key', SecretString: 'value 🚀', VersionId, VersionStages: ['AWSCURRENT'] }
    expect(await get(client, id)).toMatchObject(expected)
  }
  await expect(create(client, 'app/key')).rejects.toBeInstanceOf(ResourceExistsException)
})

test('a request token performs a write once and rejects another value', async () => {
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
])('%s is rejected and changes nothing', async (_, value, name) => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(client.send(new PutSecretValueCommand({ SecretId: 'key', ...value }))).rejects.toMatchObject({ name })
  expect(await valueOf(client, 'key')).toBe('first value')
})

test('a deleted secret is hidden, can be restored, and frees its name after the recovery window', async () => {
  let nowMs = Date.now()
  const { client } = await serveSecrets({ nowMs: () => nowMs })
  await create(client, 'key')
  const remove = () => client.send(new DeleteSecretCommand({ SecretId: 'key', RecoveryWindowInDays: 7 }))
  const restore = () => client.send(new RestoreSecretCommand({ SecretId: 'key' }))
  await remove()
  await expect(get(client, 'key')).rejects.toBeInstanceOf(InvalidRequestException)
  await expect(create(client, 'key')).rejects.toBeInstanceOf(InvalidRequestException)
  await restore()
  expect(await valueOf(client, 'key')).toBe('first value')
  await remove()
  nowMs += 7 * 86_400_000 + 1
  await expect(restore()).rejects.toBeInstanceOf(ResourceNotFoundException)
  await create(client, 'key', 'another value')
  await client.send(new DeleteSecretCommand({ SecretId: 'key', ForceDeleteWithoutRecovery: true }))
  await create(client, 'key', 'third value')
  expect(await valueOf(client, 'key')).toBe('third value')
})

/** Operations that the platform does not call; tools of AWS do. */
test('secrets are listed with filters, tagged and described without their values, and passwords are generated', async () => {
  const { client } = await serveSecrets()
  const Tags = [{ Key: 'stage', Value: 'dev' }]
  await client.send(new CreateSecretCommand({ Name: 'app/one', SecretString: 'value' }))
  await client.send(new TagResourceCommand({ SecretId: 'app/one', Tags }))
  for (const name of ['app/two', 'other']) await create(client, name)
  const Filters = [{ Key: 'name' as const, Values: ['app/'] }]
  expect(await namesOf(client, { Filters })).toEqual(['app/one', 'app/two'])
  expect(await namesOf(client, { Filters: [{ Key: 'tag-key', Values: ['stage'] }] })).toEqual(['app/one'])
  const { SecretList, NextToken } = await client.send(new ListSecretsCommand({ MaxResults: 2 }))
  expect(SecretList).toHaveLength(2)
  expect(await namesOf(client, { MaxResults: 2, NextToken })).toEqual(['other'])
  const described = await client.send(new DescribeSecretCommand({ SecretId: 'app/one' }))
  expect(described).toMatchObject({ Name: 'app/one', Tags })
  expect(JSON.stringify(described)).not.toContain('value')
  await client.send(new UntagResourceCommand({ SecretId: 'app/one', TagKeys: ['stage'] }))
  await client.send(new UpdateSecretCommand({ SecretId: 'app/one', Description: 'the use', SecretString: 'two' }))
  expect(await valueOf(client, 'app/one')).toBe('two')
  const generate = new GetRandomPasswordCommand({ ExcludePunctuation: true, ExcludeCharacters: '0Ol1' })
  expect((await client.send(generate)).RandomPassword).toMatch(/^[A-NP-Za-km-z2-9]{32}$/)
  await expect(client.send(new RotateSecretCommand({ SecretId: 'other' }))).rejects.toMatchObject({
    name: 'UnknownOperationException',
  })
})
