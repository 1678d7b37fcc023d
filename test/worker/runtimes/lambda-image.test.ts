import { GetFunctionConfigurationCommand } from '@aws-sdk/client-lambda'
import { ociTarget } from '@platform/worker/runtimes/lambda/registry-target'
import { type DeploymentSpec } from '@platform/worker/runtimes/port'
import { buildImage } from '@platform/oci/build'
import { RegistryError, type RegistryErrorKind } from '@platform/oci/error'
import { thisPlatform } from '@platform/oci/image'
import { pushImage } from '@platform/oci/push'
import { mediaTypes } from '@platform/oci/types'
import { describe, expect, test } from 'vitest'
import {
  moduleSource,
  startLambdaFixtures,
  type LambdaFixtures,
  pushWord,
  readWord,
} from '../../support/lambda-runtime.ts'
import { deploymentSpecOf } from '../../support/local-runtime.ts'
import { memoryRegistry } from '../../support/memory-registry.ts'

/** An index of two platforms: this machine's and another one. */
async function pushIndex(world: LambdaFixtures) {
  const here = thisPlatform()
  const other = { os: 'linux', architecture: here.architecture === 'arm64' ? 'amd64' : 'arm64' }
  const members = await Promise.all([here, other].map((platform) => pushFor(world, platform)))
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests: members }
  const bytes = Buffer.from(JSON.stringify(index))
  const { digest } = await world.registry.putManifest('modules/words', 'both', bytes, mediaTypes.index)
  const [ofHere, ofOther] = members.map((member) => member.digest)
  return { image: { repository: 'registry.test/modules/words', digest }, other, ofHere, ofOther }
}

async function pushFor(world: LambdaFixtures, platform: { os: string; architecture: string }) {
  const content = moduleSource(`JSON.stringify({ statusCode: 200, body: '${platform.architecture}' })`)
  const files = [{ path: '/main.mjs', content }]
  const built = await buildImage({ files, platform, config: { Cmd: ['node', '/main.mjs'] } })
  const pushed = await pushImage(world.registry, 'modules/words', built, [])
  return { ...pushed, platform }
}

const configurationOf = ({ client }: LambdaFixtures) =>
  client.send(new GetFunctionConfigurationCommand({ FunctionName: 'mod-words' }))

const targetOf = ({ target }: LambdaFixtures) => ({
  client: target,
  path: 'platform/modules',
  ensureRepository: async () => {},
  removeRepository: async () => {},
})

describe('the image of a function', () => {
  test('is that of the platform’s architecture, whatever else is in the index', async () => {
    await using world = await startLambdaFixtures()
    const { image, other, ofHere, ofOther } = await pushIndex(world)
    const deployment = await world.runtime.deploy(deploymentSpecOf(image))
    expect(deployment.digest).toBe(image.digest)
    expect(await readWord(world.runtime, deployment)).toBe(thisPlatform().architecture)
    expect(`sha256:${(await configurationOf(world)).CodeSha256}`).toBe(ofHere)
    const images = { source: () => world.registry, target: targetOf(world), platform: other }
    const there = world.another({ images })
    expect(await readWord(there, await there.deploy(deploymentSpecOf(image)))).toBe(other.architecture)
    const { CodeSha256, Architectures } = await configurationOf(world)
    expect([`sha256:${CodeSha256}`, Architectures]).toEqual([
      ofOther,
      [other.architecture === 'arm64' ? 'arm64' : 'x86_64'],
    ])
  })

  test('is copied by digest, once, into a repository of the module', async () => {
    await using world = await startLambdaFixtures()
    const image = await pushWord(world, 'one')
    const sent: string[] = []
    const putBlob = world.target.putBlob.bind(world.target)
    world.target.putBlob = async (repository, ...rest) => {
      sent.push(repository)
      return putBlob(repository, ...rest)
    }
    await world.runtime.deploy(deploymentSpecOf(image))
    expect(sent).toEqual(['platform/modules/words', 'platform/modules/words'])
    expect([...world.target.manifests.keys()]).toEqual([`platform/modules/words ${image.digest}`])
    await world.runtime.deploy(deploymentSpecOf(image))
    expect(sent).toHaveLength(2)
  })

  test('comes after its repository has been made', async () => {
    await using world = await startLambdaFixtures()
    const happened: string[] = []
    const target = {
      ...targetOf(world),
      ensureRepository: async (name: string) => void happened.push(`made ${name}`),
    }
    const putBlob = world.target.putBlob.bind(world.target)
    world.target.putBlob = async (repository, ...rest) => {
      happened.push(`sent to ${repository}`)
      return putBlob(repository, ...rest)
    }
    const runtime = world.another({ images: { source: () => world.registry, target, platform: thisPlatform() } })
    await runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    expect(happened.slice(0, 2)).toEqual(['made platform/modules/words', 'sent to platform/modules/words'])
  })

  test.each<[string, Partial<DeploymentSpec>, string]>([
    ['that its registry does not have', { digest: `sha256:${'0'.repeat(64)}` }, 'refused'],
    ['whose reference is none', { repository: 'nowhere' }, 'refused'],
  ])('%s is refused, and makes no function', async (_what, change, problem) => {
    await using world = await startLambdaFixtures()
    const assignment = { ...deploymentSpecOf(await pushWord(world, 'one')), ...change }
    await expect(world.runtime.deploy(assignment)).rejects.toMatchObject({ problem })
    expect(await world.runtime.list()).toEqual([])
  })

  test('that is made for another processor is refused, with what to do, and makes no function', async () => {
    await using world = await startLambdaFixtures()
    const { other, ofOther } = await pushIndex(world)
    const assignment = deploymentSpecOf({ repository: 'registry.test/modules/words', digest: ofOther! })
    await expect(world.runtime.deploy(assignment)).rejects.toMatchObject({
      problem: 'refused',
      message: expect.stringMatching(`made for ${other.architecture}.*--platform linux/${thisPlatform().architecture}`),
    })
    expect(await world.runtime.list()).toEqual([])
  })

  test('whose registry does not answer may be had later', async () => {
    await using world = await startLambdaFixtures()
    const image = await pushWord(world, 'one')
    world.registry.manifest = async () => {
      throw new RegistryError('unreachable', 'It does not answer.')
    }
    await expect(world.runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({ problem: 'unavailable' })
  })
})

test('a repository that a registry does not know is as good as removed; one that it does not tell of is not', async () => {
  const registry = memoryRegistry()
  const { removeRepository } = ociTarget(registry, 'modules')
  const failing = (problem: RegistryErrorKind) => {
    // oxlint-disable-next-line require-yield -- it fails before it has anything to yield
    registry.tags = async function* fails() {
      throw new RegistryError(problem, 'No.')
    }
    return removeRepository('modules/words')
  }
  await failing('not_found')
  await expect(failing('unreachable')).rejects.toMatchObject({ problem: 'unreachable' })
})
