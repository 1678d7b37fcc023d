import {
  CreateSecretCommand,
  DescribeSecretCommand,
  ListSecretsCommand,
  TagResourceCommand,
  UntagResourceCommand,
} from '@aws-sdk/client-secrets-manager'
import { expect, test } from 'vitest'
import { create, namesOf, serveSecrets } from './support.ts'

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
