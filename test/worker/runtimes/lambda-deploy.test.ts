import {
  PublishVersionCommand,
  UpdateFunctionConfigurationCommand,
  waitUntilFunctionUpdatedV2,
  CreateFunctionCommand,
  ListTagsCommand,
  GetFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda'
import { functionNameOf } from '@platform/worker/runtimes/lambda/names'
import { expect, test as base } from 'vitest'
import {
  deploymentsOf,
  deployWord,
  type InterceptCall,
  type LambdaFixtures,
  lambdaResourcesOf,
  pushWord,
  startLambdaFixtures,
  versionsOf,
  wordSpec,
  readWord,
} from '../../support/lambda-runtime.ts'
import { deploymentSpecOf } from '../../support/local-runtime.ts'
import { isLong, sampled } from '../../support/long.ts'
import { pushProgram } from '../../support/module-image.ts'
import { waitFor } from '../../support/wait-for.ts'

const test = base.extend<{ fixtures: LambdaFixtures }>({
  // oxlint-disable-next-line no-empty-pattern -- vitest requires a destructured parameter
  fixtures: async ({}, use) => {
    await using fixtures = await startLambdaFixtures({ settings: { logGroup: '/aws/lambda/mod' } })
    await use(fixtures)
  },
})

const beforePublish =
  (work: () => Promise<unknown>): InterceptCall =>
  async ({ method, path }, send) => {
    if (method === 'POST' && path.endsWith('/versions')) await work()
    return send()
  }

const twoSpecs = async (fixtures: LambdaFixtures) =>
  [await wordSpec(fixtures, 'mine'), await wordSpec(fixtures, 'theirs')] as const

test('creates one deployment for repeated and concurrent requests', async ({ fixtures }) => {
  const spec = await wordSpec(fixtures, 'one')
  const [first, second] = await Promise.all([fixtures.runtime.deploy(spec), fixtures.another().deploy(spec)])
  expect(second).toEqual(first)
  expect(await fixtures.runtime.deploy(spec)).toEqual(first)
  expect(await versionsOf(fixtures)).toEqual(['$LATEST ', `1 deployment ${spec.id}`])
  expect(await fixtures.runtime.list()).toEqual([{ deployment: first, state: 'running', crashes: 0 }])
})

test('sets log group, tags, limits and role of a function', async ({ fixtures }) => {
  const { id } = await deployWord(fixtures, 'one')
  const version = new GetFunctionConfigurationCommand({ FunctionName: 'mod-words', Qualifier: '1' })
  expect(await fixtures.client.send(version)).toMatchObject({
    LoggingConfig: { LogGroup: '/aws/lambda/mod' },
    Description: `deployment ${id}`,
    MemorySize: 256,
    Timeout: 20,
    Role: 'arn:aws:iam::000000000000:role/modules',
  })
  const Resource = 'arn:aws:lambda:us-east-1:000000000000:function:mod-words'
  const { Tags } = await fixtures.client.send(new ListTagsCommand({ Resource }))
  expect(Tags).toEqual({ 'platform:prefix': 'mod', 'platform:module': 'words' })
})

test('keeps the previous release when it deploys another one', async ({ fixtures }) => {
  const { runtime } = fixtures
  const [spec, otherSpec] = await twoSpecs(fixtures)
  const oldDeployment = await runtime.deploy(spec)
  const newDeployment = await runtime.deploy({ ...otherSpec, version: '2.0.0' })
  expect([oldDeployment.handle, newDeployment.handle]).toEqual(['mod-words:1', 'mod-words:2'])
  expect(await lambdaResourcesOf(fixtures, oldDeployment)).toEqual([spec.id, spec.digest])
  expect(await lambdaResourcesOf(fixtures, newDeployment)).toEqual([otherSpec.id, otherSpec.digest])
  expect(await runtime.deploy(spec)).toEqual(oldDeployment)
  expect(await deploymentsOf(runtime)).toEqual([oldDeployment, newDeployment])
})

test('waits while another process changes the function', async ({ fixtures }) => {
  await deployWord(fixtures, 'one')
  let reads = 0
  const runtime = fixtures.another({}, async ({ method, path }, send) => {
    if (method === 'GET' && path.endsWith('/mod-words')) reads++
    return send()
  })
  const spec = await wordSpec(fixtures, 'two')
  fixtures.lambda.hold()
  const deploying = runtime.deploy(spec)
  await waitFor('the function is polled', async () => reads >= 5)
  expect(await versionsOf(fixtures)).toHaveLength(2)
  await fixtures.lambda.release()
  expect(await lambdaResourcesOf(fixtures, await deploying)).toEqual([spec.id, spec.digest])
})

test('does not publish a change of another process as its own', async ({ fixtures }) => {
  const [ownSpec, otherSpec] = await twoSpecs(fixtures)
  const runtime = fixtures.another(
    {},
    beforePublish(() => fixtures.runtime.deploy(otherSpec)),
  )
  expect(await lambdaResourcesOf(fixtures, await runtime.deploy(ownSpec))).toEqual([ownSpec.id, ownSpec.digest])
  expect(await versionsOf(fixtures)).toHaveLength(3)
})

test('returns a version that another worker has published for the same deployment', async ({ fixtures }) => {
  const [ownSpec, otherSpec] = await twoSpecs(fixtures)
  const overtake = async () => {
    await fixtures.runtime.deploy(ownSpec)
    await fixtures.runtime.deploy(otherSpec)
  }
  expect((await fixtures.another({}, beforePublish(overtake)).deploy(ownSpec)).handle).toBe('mod-words:1')
  expect(await versionsOf(fixtures)).toHaveLength(3)
})

test.runIf(isLong)('finds a release among several pages of versions', async ({ fixtures }) => {
  const { client, runtime } = fixtures
  const image = await pushWord(fixtures, 'one')
  const FunctionName = 'mod-words'
  const polling = { client, minDelay: 0.01, maxDelay: 0.02, maxWaitTime: 20 }
  await runtime.deploy(deploymentSpecOf(image))
  for (let index = 0; index < 55; index++) {
    const Environment = { Variables: { INDEX: String(index) } }
    await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment }))
    await waitUntilFunctionUpdatedV2(polling, { FunctionName })
    await client.send(new PublishVersionCommand({ FunctionName }))
  }
  const [lastSpec, nextSpec] = [deploymentSpecOf(image), deploymentSpecOf(image)]
  const deployment = await runtime.deploy(lastSpec)
  await runtime.deploy(nextSpec)
  expect(deployment.handle).toBe('mod-words:57')
  expect(await runtime.deploy(lastSpec)).toEqual(deployment)
  expect(await deploymentsOf(runtime)).toContainEqual(deployment)
})

test('reports a rejection by Lambda', async ({ fixtures }) => {
  const deploying = fixtures.another({ role: 'invalid' }).deploy(await wordSpec(fixtures, 'one'))
  const message = expect.stringMatching(/^Lambda: ValidationException: /)
  await expect(deploying).rejects.toMatchObject({ problem: 'refused', message })
})

test('is unavailable while the function is not ready, and continues at the next attempt', async ({ fixtures }) => {
  const spec = await wordSpec(fixtures, 'one')
  fixtures.lambda.hold()
  const deploying = fixtures.another({ timeoutMs: 20 }).deploy(spec)
  await expect(deploying).rejects.toMatchObject({ problem: 'unavailable' })
  await fixtures.lambda.release()
  expect((await fixtures.runtime.deploy(spec)).handle).toBe('mod-words:1')
})

test.for(sampled(['after', 'before'] as const))(
  'completes a deployment whose worker was killed %s any call',
  async (when, { fixtures }) => {
    const { runtime } = fixtures
    const image = await pushWord(fixtures, 'one')
    let isComplete = false
    let limit = 1
    for (; !isComplete; limit++) {
      const [spec, next] = [deploymentSpecOf(image), await wordSpec(fixtures, `next ${limit}`)]
      const killedRuntime = () => {
        let calls = 0
        return fixtures.another({}, async (_, send) => {
          calls++
          if (calls > limit || (calls === limit && when === 'before')) throw new Error('The worker is killed.')
          const response = await send()
          if (calls === limit) throw new Error('The worker is killed.')
          return response
        })
      }
      const results = [
        ...(await Promise.allSettled([killedRuntime().deploy(spec)])),
        ...(await Promise.allSettled([killedRuntime().deploy(next)])),
      ]
      isComplete = results[0]?.status === 'fulfilled'
      const [deployment, nextDeployment] = [await runtime.deploy(spec), await runtime.deploy(next)]
      expect(await lambdaResourcesOf(fixtures, deployment)).toEqual([spec.id, spec.digest])
      expect(await lambdaResourcesOf(fixtures, nextDeployment)).toEqual([next.id, next.digest])
      expect(await versionsOf(fixtures)).toHaveLength(3)
      // Remove the newer release first, because unpublished changes may belong to it.
      await runtime.remove(nextDeployment, 0)
      expect(await deploymentsOf(runtime)).toEqual([deployment])
      await runtime.remove(deployment, 0)
      expect(await runtime.list()).toEqual([])
    }
    expect(limit).toBeGreaterThan(6)
  },
)

test('keeps the previous release if Lambda cannot unpack an image', async ({ fixtures }) => {
  const { runtime, target, registry } = fixtures
  const deployment = await deployWord(fixtures, 'one')
  const brokenSpec = deploymentSpecOf(
    await pushProgram(registry, 'modules/words', 'broken', { labels: { is: 'broken' } }),
  )
  const putManifest = target.putManifest.bind(target)
  target.putManifest = async (repository, ...rest) => {
    const { layers } = JSON.parse(Buffer.from(rest[1]).toString())
    for (const { digest } of layers) target.blobs.delete(`${repository} ${digest}`)
    return putManifest(repository, ...rest)
  }
  const message = expect.stringContaining('sha256:')
  await expect(runtime.deploy(brokenSpec)).rejects.toMatchObject({ problem: 'refused', message })
  target.putManifest = putManifest
  expect(await runtime.list()).toContainEqual({ deployment, state: 'running', crashes: 0 })
  const next = await wordSpec(fixtures, 'next')
  expect(await lambdaResourcesOf(fixtures, await runtime.deploy(next))).toEqual([next.id, next.digest])
})

test('retries the first release of a module after Lambda could not unpack it', async ({ fixtures }) => {
  const { runtime, target } = fixtures
  const spec = await wordSpec(fixtures, 'one')
  const blob = target.blob.bind(target)
  target.blob = async (repository, descriptor, max) => {
    if (descriptor.size > 0 && max !== undefined && max > 2 ** 22) throw new Error('The layer is lost.')
    return blob(repository, descriptor, max)
  }
  await expect(runtime.deploy(spec)).rejects.toMatchObject({ problem: 'refused' })
  target.blob = blob
  expect(await runtime.list()).toMatchObject([{ state: 'failed', lastCrash: 'The layer is lost.' }])
  expect(await lambdaResourcesOf(fixtures, await runtime.deploy(spec))).toEqual([spec.id, spec.digest])
})

test('limits function names to 64 characters and keeps them unique', () => {
  expect(functionNameOf('platform-mod', 'hello')).toBe('platform-mod-hello')
  const longText = 'x'.repeat(49)
  const names = ['a', 'b'].map((end) => functionNameOf('platform-production-mod', `${longText}${end}`))
  expect(names.map((name) => name.length)).toEqual([64, 64])
  expect(names[0]).not.toBe(names[1])
  expect(functionNameOf('platform-mod', `${longText}a`)).toBe(`platform-mod-${longText}a`)
})

const findUnpublished = async ({ runtime }: LambdaFixtures) =>
  (await runtime.list()).find(({ state }) => state === 'restarting')?.deployment

test('removes one release, and with the last one the function and its images', async ({ fixtures }) => {
  const { runtime, target } = fixtures
  const [deployment, otherDeployment] = [await deployWord(fixtures, 'one'), await deployWord(fixtures, 'two')]
  await runtime.remove(deployment, 0)
  await expect(readWord(runtime, deployment)).rejects.toMatchObject({ problem: 'unavailable' })
  expect(await readWord(runtime, otherDeployment)).toBe(`two ${otherDeployment.id}`)
  await runtime.remove(deployment, 0)
  expect(target.manifests.size).toBe(2)
  await runtime.remove(otherDeployment, 0)
  await runtime.remove(otherDeployment, 0)
  expect([await runtime.list(), target.manifests.size]).toEqual([[], 0])
})

test('tolerates a concurrent removal', async ({ fixtures }) => {
  const deployment = await deployWord(fixtures, 'one')
  const runtime = fixtures.another({}, async ({ method }, send) => {
    if (method === 'DELETE') await fixtures.runtime.remove(deployment, 0)
    return send()
  })
  await runtime.remove(deployment, 0)
  expect(await runtime.list()).toEqual([])
})

test('clears the environment when it removes the newest release first', async ({ fixtures }) => {
  const { runtime } = fixtures
  const [deployment, otherDeployment] = [await deployWord(fixtures, 'one'), await deployWord(fixtures, 'two')]
  await runtime.remove(otherDeployment, 0)
  const latestConfiguration = await fixtures.client.send(
    new GetFunctionConfigurationCommand({ FunctionName: 'mod-words' }),
  )
  expect(latestConfiguration.Environment?.Variables ?? {}).toEqual({})
  expect(await deploymentsOf(runtime)).toEqual([deployment])
  await runtime.remove(deployment, 0)
  expect(await runtime.list()).toEqual([])
})

test('waits while the function is being changed', async ({ fixtures }) => {
  const [deployment, otherDeployment] = [await deployWord(fixtures, 'one'), await deployWord(fixtures, 'two')]
  fixtures.lambda.hold()
  const deploying = fixtures.another({ timeoutMs: 10 }).deploy(await wordSpec(fixtures, 'three'))
  await expect(deploying).rejects.toMatchObject({ problem: 'unavailable' })
  // The image of the third release is uploaded, but the environment of the function is not set yet.
  expect(await findUnpublished(fixtures)).toBeUndefined()
  let conflicts = 0
  const removing = fixtures
    .another({}, async ({ method }, send) => {
      const response = await send()
      if (method === 'PUT' && response.response.statusCode === 409) conflicts++
      return response
    })
    .remove(otherDeployment, 0)
  await waitFor('the removal conflicts twice', async () => conflicts >= 2)
  await fixtures.lambda.release()
  await removing
  expect(await deploymentsOf(fixtures.runtime)).toEqual([deployment])
})

test('lists and removes a deployment that was never published', async ({ fixtures }) => {
  const published = await deployWord(fixtures, 'one')
  const failingRuntime = fixtures.another({}, async ({ method, path }, send) => {
    if (method === 'POST' && path.endsWith('/versions')) throw new Error('The worker is killed.')
    return send()
  })
  const spec = await wordSpec(fixtures, 'two')
  await expect(failingRuntime.deploy(spec)).rejects.toMatchObject({ problem: 'unavailable' })
  const deployment = await findUnpublished(fixtures)
  expect(deployment).toMatchObject({ id: spec.id, handle: 'mod-words:$LATEST' })
  await fixtures.runtime.remove(deployment!, 0)
  expect(await deploymentsOf(fixtures.runtime)).toEqual([published])
  const otherSpec = await wordSpec(fixtures, 'alone', 'modules/alone')
  await expect(failingRuntime.deploy(otherSpec)).rejects.toMatchObject({ problem: 'unavailable' })
  await fixtures.runtime.remove((await findUnpublished(fixtures))!, 0)
  expect(await versionsOf(fixtures, 'mod-alone').catch(({ name }) => name)).toBe('ResourceNotFoundException')
})

test('keeps the function for a deployment in progress when it removes the last release', async ({ fixtures }) => {
  const deployment = await deployWord(fixtures, 'one')
  const spec = await wordSpec(fixtures, 'two')
  const slowRuntime = fixtures.another({}, async ({ method, path }, send) => {
    if (method === 'POST' && path.endsWith('/versions')) await fixtures.runtime.remove(deployment, 0)
    return send()
  })
  const otherDeployment = await slowRuntime.deploy(spec)
  expect(await lambdaResourcesOf(fixtures, otherDeployment)).toEqual([spec.id, spec.digest])
  expect(await deploymentsOf(fixtures.runtime)).toEqual([otherDeployment])
})

test('creates a function again if it was deleted during a deployment', async ({ fixtures }) => {
  const deployment = await deployWord(fixtures, 'one')
  const spec = await wordSpec(fixtures, 'two')
  let isRemoved = false
  const slowRuntime = fixtures.another({}, async ({ method, path }, send) => {
    if (method === 'PUT' && path.endsWith('/code') && !isRemoved) {
      isRemoved = true
      await fixtures.runtime.remove(deployment, 0)
      await slowRuntime.deploy(spec)
    }
    return send()
  })
  expect(await lambdaResourcesOf(fixtures, await slowRuntime.deploy(spec))).toEqual([spec.id, spec.digest])
})

test('lists the modules of its prefix among all functions of the account', async ({ fixtures }) => {
  const { runtime } = fixtures
  const { digest } = await pushProgram(fixtures.target, 'foreign', '')
  const ImageUri = `lambda.test/foreign@${digest}`
  const Role = 'arn:aws:iam::000000000000:role/another'
  for (let index = 0; index < 55; index++) {
    const FunctionName = `mod-${String(index).padStart(2, '0')}`
    const input = { FunctionName, PackageType: 'Image', Code: { ImageUri }, Role } as const
    await fixtures.client.send(new CreateFunctionCommand(input))
  }
  const deployments = [
    await deployWord(fixtures, 'z', 'modules/zebra'),
    await deployWord(fixtures, 'a', 'modules/aardvark'),
  ]
  expect(new Set(await deploymentsOf(runtime))).toEqual(new Set(deployments))
  const otherRuntime = fixtures.another({ prefix: 'mod-other' })
  expect(await otherRuntime.list()).toEqual([])
  const foreignDeployment = await otherRuntime.deploy(await wordSpec(fixtures, 's', 'modules/strange'))
  expect(await deploymentsOf(otherRuntime)).toEqual([foreignDeployment])
  expect(await runtime.list()).toHaveLength(2)
})

test('reports an inactive function as running and activates it with the first request', async ({ fixtures }) => {
  const { runtime } = fixtures
  const deployment = await deployWord(fixtures, 'one')
  fixtures.lambda.deactivate('mod-words', '1')
  expect(await runtime.list()).toEqual([{ deployment, state: 'running', crashes: 0 }])
  await expect(readWord(runtime, deployment)).rejects.toMatchObject({ problem: 'unavailable' })
  const response = async () => readWord(runtime, deployment).catch(() => undefined)
  expect(await waitFor('the function is active', response)).toBe(`one ${deployment.id}`)
})
