import { GetFunctionConfigurationCommand } from '@aws-sdk/client-lambda'
import { shiftClock } from '@platform/core/clock'
import { AwsServiceError } from '@platform/local/emulators/http/error'
import { serveAws } from '@platform/local/emulators/http/server'
import type { AwsCall } from '@platform/local/emulators/http/service'
import { ecrTarget } from '@platform/worker/runtimes/lambda/ecr'
import { ociTarget } from '@platform/worker/runtimes/lambda/image'
import { buildImage } from '@platform/oci/build'
import type { Credentials } from '@platform/oci/client'
import { RegistryError, type RegistryErrorKind } from '@platform/oci/error'
import { currentPlatform } from '@platform/oci/image'
import { pushImage } from '@platform/oci/push'
import { mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import { type LambdaFixtures, pushWord, startLambdaFixtures, wordSpec } from '../../support/lambda-runtime.ts'
import { deploymentSpecOf } from '../../support/local-runtime.ts'
import { memoryRegistry } from '../../support/memory-registry.ts'

const repository = 'registry.test/modules/words'

async function pushIndex({ registry }: LambdaFixtures) {
  const platform = currentPlatform()
  const otherPlatform = { os: 'linux', architecture: platform.architecture === 'arm64' ? 'amd64' : 'arm64' }
  const manifests = await Promise.all(
    [platform, otherPlatform].map(async (platform) => {
      const files = [{ path: '/main.mjs', content: platform.architecture }]
      const image = await buildImage({ files, platform, config: { Cmd: ['node', '/main.mjs'] } })
      return { ...(await pushImage(registry, 'modules/words', image, [])), platform }
    }),
  )
  const bytes = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests }))
  const { digest } = await registry.putManifest('modules/words', 'both', bytes, mediaTypes.index)
  const [digestHere = '', digestOther = ''] = manifests.map((manifest) => manifest.digest)
  return { image: { repository, digest }, other: otherPlatform, digestHere, digestOther }
}

const codeOf = async ({ client }: LambdaFixtures) => {
  const command = new GetFunctionConfigurationCommand({ FunctionName: 'mod-words' })
  const { CodeSha256, Architectures } = await client.send(command)
  return [`sha256:${CodeSha256}`, Architectures?.[0]]
}

const targetOf = ({ target }: LambdaFixtures) => ({
  client: target,
  path: 'platform/modules',
  ensureRepository: async (_name: string) => {},
  removeRepository: async () => {},
})

test('deploys the image for the architecture of the platform', async () => {
  await using fixtures = await startLambdaFixtures()
  const { image, other, digestHere, digestOther } = await pushIndex(fixtures)
  const deployment = await fixtures.runtime.deploy(deploymentSpecOf(image))
  expect([deployment.digest, (await codeOf(fixtures))[0]]).toEqual([image.digest, digestHere])
  const images = { source: () => fixtures.registry, target: targetOf(fixtures), platform: other }
  await fixtures.another({ images }).deploy(deploymentSpecOf(image))
  expect(await codeOf(fixtures)).toEqual([digestOther, other.architecture === 'arm64' ? 'arm64' : 'x86_64'])
})

test('copies an image by digest, once, after it has created the repository', async () => {
  await using fixtures = await startLambdaFixtures()
  const image = await pushWord(fixtures, 'one')
  const calls: string[] = []
  const ensureRepository = async (name: string) => void calls.push(`create ${name}`)
  const putBlob = fixtures.target.putBlob.bind(fixtures.target)
  fixtures.target.putBlob = async (name, ...rest) => {
    calls.push(`upload to ${name}`)
    return putBlob(name, ...rest)
  }
  const target = { ...targetOf(fixtures), ensureRepository }
  const images = { source: () => fixtures.registry, target, platform: currentPlatform() }
  const runtime = fixtures.another({ images })
  await runtime.deploy(deploymentSpecOf(image))
  const name = 'platform/modules/words'
  expect(calls).toEqual([`create ${name}`, `upload to ${name}`, `upload to ${name}`])
  expect([...fixtures.target.manifests.keys()]).toEqual([`${name} ${image.digest}`])
  await runtime.deploy(deploymentSpecOf(image))
  expect(calls.filter((call) => call.startsWith('upload'))).toHaveLength(2)
})

test.each([
  ['is missing in its registry', { digest: `sha256:${'0'.repeat(64)}` }],
  ['has an invalid reference', { repository: 'nowhere' }],
])('creates no function for an image that %s', async (_, change) => {
  await using fixtures = await startLambdaFixtures()
  const spec = { ...(await wordSpec(fixtures, 'one')), ...change }
  await expect(fixtures.runtime.deploy(spec)).rejects.toMatchObject({ problem: 'refused' })
  expect(await fixtures.runtime.list()).toEqual([])
})

test('creates no function for an image of another architecture, and names the build option', async () => {
  await using fixtures = await startLambdaFixtures()
  const { other, digestOther } = await pushIndex(fixtures)
  const deploying = fixtures.runtime.deploy(deploymentSpecOf({ repository, digest: digestOther }))
  await expect(deploying).rejects.toMatchObject({
    problem: 'refused',
    message: expect.stringMatching(
      `made for ${other.architecture}.*--platform linux/${currentPlatform().architecture}`,
    ),
  })
  expect(await fixtures.runtime.list()).toEqual([])
})

test('is unavailable while the registry of the image is unreachable', async () => {
  await using fixtures = await startLambdaFixtures()
  const spec = await wordSpec(fixtures, 'one')
  fixtures.registry.manifest = async () => {
    throw new RegistryError('unreachable', 'No response.')
  }
  await expect(fixtures.runtime.deploy(spec)).rejects.toMatchObject({ problem: 'unavailable' })
})

test('ignores that a repository to remove is missing, but reports other errors', async () => {
  const registry = memoryRegistry()
  const { removeRepository } = ociTarget(registry, 'modules')
  const failWith = (problem: RegistryErrorKind) => {
    // oxlint-disable-next-line require-yield -- fails before the first item
    registry.tags = async function* fail() {
      throw new RegistryError(problem, 'No.')
    }
    return removeRepository('modules/words')
  }
  await failWith('not_found')
  await expect(failWith('unreachable')).rejects.toMatchObject({ problem: 'unreachable' })
})

async function startEcr() {
  const calls: string[] = []
  const repositories = new Set(['modules/old'])
  const policies = new Map<string, string>()
  const requireRepository = (name: unknown): string => {
    if (!repositories.has(String(name))) throw new AwsServiceError('RepositoryNotFoundException', 'Not found.')
    return String(name)
  }
  const actions: Record<string, (input: AwsCall['input']) => Record<string, unknown>> = {
    CreateRepository: ({ repositoryName }) => {
      if (repositories.has(String(repositoryName)))
        throw new AwsServiceError('RepositoryAlreadyExistsException', 'Exists.')
      repositories.add(String(repositoryName))
      return {}
    },
    SetRepositoryPolicy: ({ repositoryName, policyText }) => {
      policies.set(requireRepository(repositoryName), String(policyText))
      return {}
    },
    DeleteRepository: ({ repositoryName, force }) => {
      const name = requireRepository(repositoryName)
      if (force !== true) throw new AwsServiceError('RepositoryNotEmptyException', 'Not empty.')
      repositories.delete(name)
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
    respond: ({ action, input }) => {
      calls.push(action)
      const perform = actions[action]
      if (perform === undefined) throw new AwsServiceError('AccessDeniedException', `${action} is not allowed.`, 403)
      return perform(input)
    },
  })
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' }
  const settings = { endpoint: server.url, region: 'eu-central-1', credentials }
  return { calls, repositories, policies, actions, settings, [Symbol.asyncDispose]: () => server.close() }
}

describe('ECR', () => {
  test('creates and deletes repositories idempotently, and lets Lambda read them', async () => {
    await using ecr = await startEcr()
    const target = ecrTarget(ecr.settings, 'modules', () => memoryRegistry())
    for (const name of ['modules/old', 'modules/new', 'modules/new']) await target.ensureRepository(name)
    expect([...ecr.repositories]).toEqual(['modules/old', 'modules/new'])
    for (const name of ecr.repositories) {
      const { Statement } = JSON.parse(ecr.policies.get(name) ?? '')
      expect(Statement).toEqual([
        {
          Sid: expect.any(String),
          Effect: 'Allow',
          Principal: { Service: 'lambda.amazonaws.com' },
          Action: ['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
        },
      ])
    }
    for (const name of ['modules/new', 'modules/new']) await target.removeRepository(name)
    expect([...ecr.repositories]).toEqual(['modules/old'])
    delete ecr.actions['CreateRepository']
    await expect(target.ensureRepository('modules/other')).rejects.toMatchObject({ name: 'AccessDeniedException' })
  })

  test('caches the registry credentials until they expire', async () => {
    await using ecr = await startEcr()
    let credentials: (() => Promise<Credentials>) | undefined
    ecrTarget(ecr.settings, 'modules', (provider) => {
      credentials = provider
      return memoryRegistry()
    })
    expect(ecr.calls).toEqual([])
    expect(await credentials?.()).toEqual({ username: 'AWS', password: 'a:b' })
    await credentials?.()
    expect(ecr.calls).toEqual(['GetAuthorizationToken'])
    shiftClock(11 * 3_600_000)
    await credentials?.()
    expect(ecr.calls).toHaveLength(2)
  })
})
