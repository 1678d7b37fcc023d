import { CreateFunctionCommand, GetFunctionConfigurationCommand, ListTagsCommand } from '@aws-sdk/client-lambda'
import { expect, test } from 'vitest'
import {
  deploymentsOf,
  deployWord,
  lambdaResourcesOf,
  readWord,
  startLambdaFixtures,
  type LambdaFixtures,
  versionsOf,
  wordSpec,
} from '../../support/lambda-runtime.ts'
import { pushProgram } from '../../support/module-image.ts'
import { waitFor } from '../../support/wait-for.ts'

/** The deployment that is not published yet. */
const unpublished = async ({ runtime }: LambdaFixtures) =>
  (await runtime.list()).find(({ state }) => state === 'restarting')?.deployment

test('removes one release, and with the last one the function and its images', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime, target } = fixtures
  const [one, two] = [await deployWord(fixtures, 'one'), await deployWord(fixtures, 'two')]
  await runtime.remove(one, 0)
  await expect(readWord(runtime, one)).rejects.toMatchObject({ problem: 'unavailable' })
  expect(await readWord(runtime, two)).toBe(`two ${two.id}`)
  await runtime.remove(one, 0)
  expect(target.manifests.size).toBe(2)
  await runtime.remove(two, 0)
  await runtime.remove(two, 0)
  expect([await runtime.list(), target.manifests.size]).toEqual([[], 0])
})

test('tolerates a concurrent removal', async () => {
  await using fixtures = await startLambdaFixtures()
  const one = await deployWord(fixtures, 'one')
  const runtime = fixtures.another({}, async ({ method }, send) => {
    if (method === 'DELETE') await fixtures.runtime.remove(one, 0)
    return send()
  })
  await runtime.remove(one, 0)
  expect(await runtime.list()).toEqual([])
})

test('clears the environment when it removes the newest release first', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime } = fixtures
  const [one, two] = [await deployWord(fixtures, 'one'), await deployWord(fixtures, 'two')]
  await runtime.remove(two, 0)
  const latest = await fixtures.client.send(new GetFunctionConfigurationCommand({ FunctionName: 'mod-words' }))
  expect(latest.Environment?.Variables ?? {}).toEqual({})
  expect(await deploymentsOf(runtime)).toEqual([one])
  await runtime.remove(one, 0)
  expect(await runtime.list()).toEqual([])
})

test('waits while the function is being changed', async () => {
  await using fixtures = await startLambdaFixtures()
  const [one, two] = [await deployWord(fixtures, 'one'), await deployWord(fixtures, 'two')]
  fixtures.lambda.hold()
  const deploying = fixtures.another({ timeoutMs: 10 }).deploy(await wordSpec(fixtures, 'three'))
  await expect(deploying).rejects.toMatchObject({ problem: 'unavailable' })
  // Its image is uploaded, but its environment is not set yet.
  expect(await unpublished(fixtures)).toBeUndefined()
  let conflicts = 0
  const removing = fixtures
    .another({}, async ({ method }, send) => {
      const response = await send()
      if (method === 'PUT' && response.response.statusCode === 409) conflicts++
      return response
    })
    .remove(two, 0)
  await waitFor('the removal conflicts twice', async () => conflicts >= 2)
  await fixtures.lambda.release()
  await removing
  expect(await deploymentsOf(fixtures.runtime)).toEqual([one])
})

test('lists and removes a deployment that was never published', async () => {
  await using fixtures = await startLambdaFixtures()
  const one = await deployWord(fixtures, 'one')
  const failing = fixtures.another({}, async ({ method, path }, send) => {
    if (method === 'POST' && path.endsWith('/versions')) throw new Error('The worker is killed.')
    return send()
  })
  const spec = await wordSpec(fixtures, 'two')
  await expect(failing.deploy(spec)).rejects.toMatchObject({ problem: 'unavailable' })
  const deployment = await unpublished(fixtures)
  expect(deployment).toMatchObject({ id: spec.id, handle: 'mod-words:$LATEST' })
  await fixtures.runtime.remove(deployment!, 0)
  expect(await deploymentsOf(fixtures.runtime)).toEqual([one])
  const other = await wordSpec(fixtures, 'alone', 'modules/alone')
  await expect(failing.deploy(other)).rejects.toMatchObject({ problem: 'unavailable' })
  await fixtures.runtime.remove((await unpublished(fixtures))!, 0)
  expect(await versionsOf(fixtures, 'mod-alone').catch(({ name }) => name)).toBe('ResourceNotFoundException')
})

test('keeps the function for a deployment in progress when it removes the last release', async () => {
  await using fixtures = await startLambdaFixtures()
  const one = await deployWord(fixtures, 'one')
  const spec = await wordSpec(fixtures, 'two')
  const slow = fixtures.another({}, async ({ method, path }, send) => {
    if (method === 'POST' && path.endsWith('/versions')) await fixtures.runtime.remove(one, 0)
    return send()
  })
  const two = await slow.deploy(spec)
  expect(await lambdaResourcesOf(fixtures, two)).toEqual([spec.id, spec.digest])
  expect(await deploymentsOf(fixtures.runtime)).toEqual([two])
})

test('creates a function again that was deleted during a deployment', async () => {
  await using fixtures = await startLambdaFixtures()
  const one = await deployWord(fixtures, 'one')
  const spec = await wordSpec(fixtures, 'two')
  let isRemoved = false
  const slow = fixtures.another({}, async ({ method, path }, send) => {
    if (method === 'PUT' && path.endsWith('/code') && !isRemoved) {
      isRemoved = true
      await fixtures.runtime.remove(one, 0)
      await slow.deploy(spec)
    }
    return send()
  })
  expect(await lambdaResourcesOf(fixtures, await slow.deploy(spec))).toEqual([spec.id, spec.digest])
})

test('lists the modules of its prefix among all functions of the account', async () => {
  await using fixtures = await startLambdaFixtures()
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
  const other = fixtures.another({ prefix: 'mod-other' })
  expect(await other.list()).toEqual([])
  const foreign = await other.deploy(await wordSpec(fixtures, 's', 'modules/strange'))
  expect(await deploymentsOf(other)).toEqual([foreign])
  expect(await runtime.list()).toHaveLength(2)
})

test('reports an inactive function as running and activates it with the first request', async () => {
  await using fixtures = await startLambdaFixtures()
  const { runtime } = fixtures
  const deployment = await deployWord(fixtures, 'one')
  fixtures.lambda.deactivate('mod-words', '1')
  expect(await runtime.list()).toEqual([{ deployment, state: 'running', crashes: 0 }])
  await expect(readWord(runtime, deployment)).rejects.toMatchObject({ problem: 'unavailable' })
  const response = async () => readWord(runtime, deployment).catch(() => undefined)
  expect(await waitFor('the function is active', response)).toBe(`one ${deployment.id}`)
})

test('tags functions with prefix and module', async () => {
  await using fixtures = await startLambdaFixtures()
  await deployWord(fixtures, 'one')
  const Resource = 'arn:aws:lambda:us-east-1:000000000000:function:mod-words'
  const { Tags } = await fixtures.client.send(new ListTagsCommand({ Resource }))
  expect(Tags).toEqual({ 'platform:prefix': 'mod', 'platform:module': 'words' })
})
