import {
  GetFunctionConfigurationCommand,
  PublishVersionCommand,
  UpdateFunctionConfigurationCommand,
  waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda'
import { functionNameOf } from '@platform/worker/runtimes/lambda/names'
import { expect, test } from 'vitest'
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
} from '../../support/lambda-runtime.ts'
import { deploymentSpecOf } from '../../support/local-runtime.ts'
import { sampled } from '../../support/long.ts'
import { pushProgram } from '../../support/module-image.ts'
import { waitFor } from '../../support/wait-for.ts'

/** Runs the work before each publication of a version. */
const beforePublish =
  (work: () => Promise<unknown>): InterceptCall =>
  async ({ method, path }, send) => {
    if (method === 'POST' && path.endsWith('/versions')) await work()
    return send()
  }

const twoSpecs = async (fixtures: LambdaFixtures) =>
  [await wordSpec(fixtures, 'mine'), await wordSpec(fixtures, 'theirs')] as const

test('creates one deployment for repeated and concurrent requests', async () => {
  await using fixtures = await startLambdaFixtures()
  const spec = await wordSpec(fixtures, 'one')
  const [first, second] = await Promise.all([fixtures.runtime.deploy(spec), fixtures.another().deploy(spec)])
  expect(second).toEqual(first)
  expect(await fixtures.runtime.deploy(spec)).toEqual(first)
  expect(await versionsOf(fixtures)).toEqual(['$LATEST ', `1 deployment ${spec.id}`])
  expect(await fixtures.runtime.list()).toEqual([{ deployment: first, state: 'running', crashes: 0 }])
})

test('writes all modules to the configured log group', async () => {
  await using fixtures = await startLambdaFixtures({ settings: { logGroup: '/aws/lambda/mod' } })
  for (const word of ['one', 'two']) {
    const { handle } = await deployWord(fixtures, word)
    const [FunctionName, Qualifier] = handle.split(':')
    const command = new GetFunctionConfigurationCommand({ FunctionName, Qualifier })
    expect((await fixtures.client.send(command)).LoggingConfig).toEqual({ LogGroup: '/aws/lambda/mod' })
  }
})

test('keeps the previous release when it deploys another one', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime } = fixtures
  const [one, two] = await twoSpecs(fixtures)
  const before = await runtime.deploy(one)
  const after = await runtime.deploy({ ...two, version: '2.0.0' })
  expect([before.handle, after.handle]).toEqual(['mod-words:1', 'mod-words:2'])
  expect(await lambdaResourcesOf(fixtures, before)).toEqual([one.id, one.digest])
  expect(await lambdaResourcesOf(fixtures, after)).toEqual([two.id, two.digest])
  expect(await runtime.deploy(one)).toEqual(before)
  expect(await deploymentsOf(runtime)).toEqual([before, after])
})

test('gives concurrent releases of a module their own image and environment', async () => {
  await using fixtures = await startLambdaFixtures()
  await deployWord(fixtures, 'zero')
  const specs = await Promise.all(['one', 'two', 'three'].map((word) => wordSpec(fixtures, word)))
  const deployments = await Promise.all(specs.map((spec) => fixtures.another().deploy(spec)))
  const resources = await Promise.all(deployments.map((deployment) => lambdaResourcesOf(fixtures, deployment)))
  expect(resources).toEqual(specs.map(({ id, digest }) => [id, digest]))
})

test('waits while another process changes the function', async () => {
  await using fixtures = await startLambdaFixtures()
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

test('does not publish a change of another process as its own', async () => {
  await using fixtures = await startLambdaFixtures()
  const [mine, theirs] = await twoSpecs(fixtures)
  const runtime = fixtures.another(
    {},
    beforePublish(() => fixtures.runtime.deploy(theirs)),
  )
  expect(await lambdaResourcesOf(fixtures, await runtime.deploy(mine))).toEqual([mine.id, mine.digest])
  expect(await versionsOf(fixtures)).toHaveLength(3)
})

test('returns a version that another worker has published for the same deployment', async () => {
  await using fixtures = await startLambdaFixtures()
  const [mine, theirs] = await twoSpecs(fixtures)
  const overtake = async () => {
    await fixtures.runtime.deploy(mine)
    await fixtures.runtime.deploy(theirs)
  }
  expect((await fixtures.another({}, beforePublish(overtake)).deploy(mine)).handle).toBe('mod-words:1')
  expect(await versionsOf(fixtures)).toHaveLength(3)
})

test('finds a release among several pages of versions', async () => {
  await using fixtures = await startLambdaFixtures()
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
  const [last, next] = [deploymentSpecOf(image), deploymentSpecOf(image)]
  const deployment = await runtime.deploy(last)
  await runtime.deploy(next)
  expect(deployment.handle).toBe('mod-words:57')
  expect(await runtime.deploy(last)).toEqual(deployment)
  expect(await deploymentsOf(runtime)).toContainEqual(deployment)
})

test('reports a rejection by Lambda', async () => {
  await using fixtures = await startLambdaFixtures()
  const deploying = fixtures.another({ role: 'invalid' }).deploy(await wordSpec(fixtures, 'one'))
  const message = expect.stringMatching(/^Lambda: ValidationException: /)
  await expect(deploying).rejects.toMatchObject({ problem: 'refused', message })
})

test('is unavailable while the function is not ready, and continues at the next attempt', async () => {
  await using fixtures = await startLambdaFixtures()
  const spec = await wordSpec(fixtures, 'one')
  fixtures.lambda.hold()
  const deploying = fixtures.another({ timeoutMs: 20 }).deploy(spec)
  await expect(deploying).rejects.toMatchObject({ problem: 'unavailable' })
  await fixtures.lambda.release()
  expect((await fixtures.runtime.deploy(spec)).handle).toBe('mod-words:1')
})

test.each(sampled(['after', 'before'] as const))(
  'completes a deployment whose worker was killed %s any call',
  async (when) => {
    await using fixtures = await startLambdaFixtures()
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
      const [one, two] = [await runtime.deploy(spec), await runtime.deploy(next)]
      expect(await lambdaResourcesOf(fixtures, one)).toEqual([spec.id, spec.digest])
      expect(await lambdaResourcesOf(fixtures, two)).toEqual([next.id, next.digest])
      expect(await versionsOf(fixtures)).toHaveLength(3)
      // Removes the newer release first, because unpublished changes may belong to it.
      await runtime.remove(two, 0)
      expect(await deploymentsOf(runtime)).toEqual([one])
      await runtime.remove(one, 0)
      expect(await runtime.list()).toEqual([])
    }
    expect(limit).toBeGreaterThan(6)
  },
)

test('keeps the previous release if Lambda cannot unpack an image', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime, target, registry } = fixtures
  const one = await deployWord(fixtures, 'one')
  const broken = deploymentSpecOf(await pushProgram(registry, 'modules/words', 'broken', { labels: { is: 'broken' } }))
  const putManifest = target.putManifest.bind(target)
  target.putManifest = async (repository, ...rest) => {
    const { layers } = JSON.parse(Buffer.from(rest[1]).toString())
    for (const { digest } of layers) target.blobs.delete(`${repository} ${digest}`)
    return putManifest(repository, ...rest)
  }
  const message = expect.stringContaining('sha256:')
  await expect(runtime.deploy(broken)).rejects.toMatchObject({ problem: 'refused', message })
  target.putManifest = putManifest
  expect(await runtime.list()).toContainEqual({ deployment: one, state: 'running', crashes: 0 })
  const next = await wordSpec(fixtures, 'next')
  expect(await lambdaResourcesOf(fixtures, await runtime.deploy(next))).toEqual([next.id, next.digest])
})

test('retries the first release of a module after Lambda could not unpack it', async () => {
  await using fixtures = await startLambdaFixtures()
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
  const long = 'x'.repeat(49)
  const names = ['a', 'b'].map((end) => functionNameOf('platform-production-mod', `${long}${end}`))
  expect(names.map((name) => name.length)).toEqual([64, 64])
  expect(names[0]).not.toBe(names[1])
  expect(functionNameOf('platform-mod', `${long}a`)).toBe(`platform-mod-${long}a`)
})
