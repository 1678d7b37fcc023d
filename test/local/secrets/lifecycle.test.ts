import {
  CreateSecretCommand,
  DeleteSecretCommand,
  DescribeSecretCommand,
  GetRandomPasswordCommand,
  InvalidParameterException,
  InvalidRequestException,
  ListSecretsCommand,
  type ListSecretsCommandInput,
  ResourceExistsException,
  ResourceNotFoundException,
  RestoreSecretCommand,
  RotateSecretCommand,
  type SecretsManagerClient,
  TagResourceCommand,
  UntagResourceCommand,
} from '@aws-sdk/client-secrets-manager'
import { describe, expect, test } from 'vitest'
import { create, get, serveSecrets, valueOf } from './support.ts'

const millisecondsPerDay = 86_400_000

async function namesOf(client: SecretsManagerClient, input: ListSecretsCommandInput = {}) {
  const { SecretList = [] } = await client.send(new ListSecretsCommand(input))
  return SecretList.map((secret) => secret.Name)
}

test('a name is taken once', async () => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(create(client, 'key')).rejects.toBeInstanceOf(ResourceExistsException)
})

test('a secret is described without its value', async () => {
  const { client } = await serveSecrets()
  const Tags = [{ Key: 'stage', Value: 'dev' }]
  const created = await client.send(
    new CreateSecretCommand({ Name: 'key', Description: 'what it is for', Tags, SecretString: 'value' }),
  )
  const described = await client.send(new DescribeSecretCommand({ SecretId: 'key' }))
  expect(described).toMatchObject({
    ARN: created.ARN,
    Name: 'key',
    Description: 'what it is for',
    Tags,
    CreatedDate: expect.any(Date),
    VersionIdsToStages: { [created.VersionId!]: ['AWSCURRENT'] },
  })
  expect(JSON.stringify(described)).not.toContain('value')
})

test('tags are added, replaced and removed', async () => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  const tag = (Key: string, Value: string) =>
    client.send(new TagResourceCommand({ SecretId: 'key', Tags: [{ Key, Value }] }))
  await tag('stage', 'dev')
  await tag('owner', 'me')
  await tag('stage', 'production')
  await client.send(new UntagResourceCommand({ SecretId: 'key', TagKeys: ['owner'] }))
  const { Tags } = await client.send(new DescribeSecretCommand({ SecretId: 'key' }))
  expect(Tags).toEqual([{ Key: 'stage', Value: 'production' }])
})

describe('deleting', () => {
  test('hides a secret, which can be restored with its value', async () => {
    const { client } = await serveSecrets()
    await create(client, 'key')
    const { DeletionDate } = await client.send(new DeleteSecretCommand({ SecretId: 'key', RecoveryWindowInDays: 7 }))
    const { DeletedDate } = await client.send(new DescribeSecretCommand({ SecretId: 'key' }))
    expect(DeletionDate!.getTime() - DeletedDate!.getTime()).toBe(7 * millisecondsPerDay)
    await expect(get(client, 'key')).rejects.toBeInstanceOf(InvalidRequestException)
    await expect(create(client, 'key')).rejects.toBeInstanceOf(InvalidRequestException)
    expect(await namesOf(client)).toEqual([])
    expect(await namesOf(client, { IncludePlannedDeletion: true })).toEqual(['key'])

    await client.send(new RestoreSecretCommand({ SecretId: 'key' }))
    expect(await valueOf(client, 'key')).toBe('first value')
  })

  test('frees the name once the recovery window is over', async () => {
    let nowMs = Date.now()
    const { client } = await serveSecrets({ nowMs: () => nowMs })
    await create(client, 'key')
    await client.send(new DeleteSecretCommand({ SecretId: 'key', RecoveryWindowInDays: 7 }))
    nowMs += 7 * millisecondsPerDay + 1
    const restore = client.send(new RestoreSecretCommand({ SecretId: 'key' }))
    await expect(restore).rejects.toBeInstanceOf(ResourceNotFoundException)
    await create(client, 'key', 'another value')
    expect(await valueOf(client, 'key')).toBe('another value')
  })

  test('at once frees the name at once, and may be repeated', async () => {
    const { client } = await serveSecrets()
    await create(client, 'key')
    const command = new DeleteSecretCommand({ SecretId: 'key', ForceDeleteWithoutRecovery: true })
    await client.send(command)
    await client.send(command)
    await create(client, 'key', 'another value')
    expect(await valueOf(client, 'key')).toBe('another value')
  })

  test.each([
    [{ RecoveryWindowInDays: 7, ForceDeleteWithoutRecovery: true }, InvalidParameterException.name],
    [{ RecoveryWindowInDays: 6 }, 'ValidationException'],
    [{ SecretId: 'missing' }, ResourceNotFoundException.name],
  ])('with %o is refused', async (input, name) => {
    const { client } = await serveSecrets()
    await create(client, 'key')
    await expect(client.send(new DeleteSecretCommand({ SecretId: 'key', ...input }))).rejects.toMatchObject({ name })
    expect(await valueOf(client, 'key')).toBe('first value')
  })
})

test('a list is read in pages', async () => {
  const { client } = await serveSecrets()
  for (const name of ['one', 'two', 'three']) await create(client, name)
  const first = await client.send(new ListSecretsCommand({ MaxResults: 2 }))
  expect(first.SecretList).toHaveLength(2)
  expect(await namesOf(client, { MaxResults: 2, NextToken: first.NextToken })).toEqual(['three'])
  expect(await namesOf(client, { SortOrder: 'desc' })).toEqual(['three', 'two', 'one'])
})

test.each([
  [[{ Key: 'name' as const, Values: ['app/'] }], ['app/one', 'app/two']],
  [[{ Key: 'name' as const, Values: ['!app/'] }], ['other']],
  [[{ Key: 'tag-key' as const, Values: ['stage'] }], ['app/one', 'other']],
  [
    [
      { Key: 'tag-value' as const, Values: ['dev'] },
      { Key: 'name' as const, Values: ['app/', 'x'] },
    ],
    ['app/one'],
  ],
  [[{ Key: 'description' as const, Values: ['the OTHER'] }], ['other']],
  [[{ Key: 'all' as const, Values: ['two'] }], ['app/two']],
])('a list is filtered by %j', async (filters, names) => {
  const { client } = await serveSecrets()
  const Tags = [{ Key: 'stage', Value: 'dev' }]
  await client.send(new CreateSecretCommand({ Name: 'app/one', Tags }))
  await client.send(new CreateSecretCommand({ Name: 'app/two' }))
  await client.send(new CreateSecretCommand({ Name: 'other', Description: 'The other one', Tags }))
  expect(await namesOf(client, { Filters: filters })).toEqual(names)
})

describe('a random password', () => {
  test('has the length asked for and every type of character', async () => {
    const { client } = await serveSecrets()
    const { RandomPassword } = await client.send(new GetRandomPasswordCommand({ PasswordLength: 20 }))
    expect(RandomPassword).toHaveLength(20)
    for (const type of [/[a-z]/, /[A-Z]/, /\d/, /[^\w\s]/]) expect(RandomPassword).toMatch(type)
  })

  test('leaves out what is excluded', async () => {
    const { client } = await serveSecrets()
    const command = new GetRandomPasswordCommand({ ExcludePunctuation: true, ExcludeCharacters: '0Ol1' })
    expect((await client.send(command)).RandomPassword).toMatch(/^[A-NP-Za-km-z2-9]{32}$/)
  })

  test('must be long enough for what it must include', async () => {
    const { client } = await serveSecrets()
    const command = new GetRandomPasswordCommand({ PasswordLength: 3 })
    await expect(client.send(command)).rejects.toBeInstanceOf(InvalidParameterException)
  })
})

test('an action that is not supported is named as such', async () => {
  const { client } = await serveSecrets()
  await create(client, 'key')
  await expect(client.send(new RotateSecretCommand({ SecretId: 'key' }))).rejects.toMatchObject({
    name: 'UnknownOperationException',
  })
})
