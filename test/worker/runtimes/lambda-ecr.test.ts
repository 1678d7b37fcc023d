import { shiftClock } from '@platform/core/clock'
import { AwsFault } from '@platform/local/emulators/http/error'
import { serveAws } from '@platform/local/emulators/http/server'
import { type AwsCall } from '@platform/local/emulators/http/service'
import { ecrTarget } from '@platform/worker/runtimes/lambda/ecr'
import { type Credentials } from '@platform/oci/client'
import { expect, test } from 'vitest'
import { memoryRegistry } from '../../support/memory-registry.ts'

/** As much of ECR as its reference says of four calls: there is no stand-in to be had. */
async function ecr() {
  const calls: string[] = []
  const repositories = new Set(['modules/old'])
  /** Repository → who may read it. */
  const policies = new Map<string, string>()
  const answers: Record<string, (input: AwsCall['input']) => Record<string, unknown>> = {
    CreateRepository: ({ repositoryName }) => {
      if (repositories.has(String(repositoryName))) throw new AwsFault('RepositoryAlreadyExistsException', 'It exists.')
      repositories.add(String(repositoryName))
      return {}
    },
    SetRepositoryPolicy: ({ repositoryName, policyText }) => {
      if (!repositories.has(String(repositoryName))) throw new AwsFault('RepositoryNotFoundException', 'It has gone.')
      policies.set(String(repositoryName), String(policyText))
      return {}
    },
    DeleteRepository: ({ repositoryName, force }) => {
      if (!repositories.has(String(repositoryName))) throw new AwsFault('RepositoryNotFoundException', 'It has gone.')
      if (force !== true) throw new AwsFault('RepositoryNotEmptyException', 'It has images.')
      repositories.delete(String(repositoryName))
      return {}
    },
    GetAuthorizationToken: () => ({
      authorizationData: [{ authorizationToken: Buffer.from('AWS:a:b').toString('base64') }],
    }),
  }
  const server = await serveAws({
    target: 'AmazonEC2ContainerRegistry_V20150921',
    contentType: 'application/x-amz-json-1.1',
    errorNamespace: '',
    answer: ({ action, input }) => {
      calls.push(action)
      const answer = answers[action]
      if (answer === undefined) throw new AwsFault('AccessDeniedException', `${action} is not allowed.`, 403)
      return answer(input)
    },
  })
  const settings = {
    endpoint: server.url,
    region: 'eu-central-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  }
  return { calls, repositories, policies, answers, settings, [Symbol.asyncDispose]: () => server.close() }
}

test('repositories of ECR are made before images come, and go with them, whoever was there first', async () => {
  await using fake = await ecr()
  const target = ecrTarget(fake.settings, 'modules', () => memoryRegistry())
  for (const name of ['modules/old', 'modules/new', 'modules/new']) await target.ensureRepository(name)
  expect([...fake.repositories]).toEqual(['modules/old', 'modules/new'])
  for (const name of ['modules/new', 'modules/new']) await target.removeRepository(name)
  expect([...fake.repositories]).toEqual(['modules/old'])
  delete fake.answers['CreateRepository']
  await expect(target.ensureRepository('modules/other')).rejects.toMatchObject({ name: 'AccessDeniedException' })
})

test('Lambda may read a repository before it hears of an image in it, whoever has made that', async () => {
  await using fake = await ecr()
  const target = ecrTarget(fake.settings, 'modules', () => memoryRegistry())
  for (const name of ['modules/old', 'modules/new']) await target.ensureRepository(name)
  for (const name of fake.repositories) {
    const { Statement } = JSON.parse(fake.policies.get(name) ?? '')
    expect(Statement).toEqual([
      {
        Sid: expect.any(String),
        Effect: 'Allow',
        Principal: { Service: 'lambda.amazonaws.com' },
        Action: ['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
      },
    ])
  }
})

test('the registry is asked with a token that is kept while it lives', async () => {
  await using fake = await ecr()
  let credentials: (() => Promise<Credentials>) | undefined
  ecrTarget(fake.settings, 'modules', (given) => {
    credentials = given
    return memoryRegistry()
  })
  expect(fake.calls).toEqual([])
  expect(await credentials?.()).toEqual({ username: 'AWS', password: 'a:b' })
  await credentials?.()
  expect(fake.calls).toEqual(['GetAuthorizationToken'])
  shiftClock(11 * 3_600_000)
  await credentials?.()
  expect(fake.calls).toHaveLength(2)
})
