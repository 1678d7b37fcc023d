import {
  GetFunctionConfigurationCommand,
  PublishVersionCommand,
  UpdateFunctionConfigurationCommand,
  waitUntilFunctionUpdatedV2,
} from '@aws-sdk/client-lambda'
import { functionNameOf } from '@platform/worker/runtimes/lambda/names'
import { describe, expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import { startLambdaFixtures, lambdaResourcesOf, pushWord, readWord, versionsOf } from '../../support/lambda-runtime.ts'
import { deploymentSpecOf } from '../../support/local-runtime.ts'
import { pushProgram } from '../../support/module-image.ts'

describe('deploying', () => {
  test('the same assignment twice is one deployment, one after the other and at once', async () => {
    await using world = await startLambdaFixtures()
    const assignment = deploymentSpecOf(await pushWord(world, 'one'))
    const [first, second] = await Promise.all([world.runtime.deploy(assignment), world.another().deploy(assignment)])
    expect(second).toEqual(first)
    expect(await world.runtime.deploy(assignment)).toEqual(first)
    expect(await versionsOf(world)).toEqual(['$LATEST ', `1 deployment ${assignment.id}`])
    expect(await world.runtime.list()).toEqual([{ deployment: first, state: 'running', crashes: 0 }])
  })

  test('where there is a log for all modules, each writes into it, also after it was changed', async () => {
    await using world = await startLambdaFixtures({ settings: { logGroup: '/aws/lambda/mod' } })
    for (const word of ['one', 'two']) {
      const { handle } = await world.runtime.deploy(deploymentSpecOf(await pushWord(world, word)))
      const [FunctionName, Qualifier] = handle.split(':')
      const { LoggingConfig } = await world.client.send(
        new GetFunctionConfigurationCommand({ FunctionName, Qualifier }),
      )
      expect(LoggingConfig).toEqual({ LogGroup: '/aws/lambda/mod' })
    }
  })

  test('another release leaves the one that serves as it is', async () => {
    await using world = await startLambdaFixtures()
    const { runtime } = world
    const [one, two] = [deploymentSpecOf(await pushWord(world, 'one')), deploymentSpecOf(await pushWord(world, 'two'))]
    const before = await runtime.deploy(one)
    const after = await runtime.deploy({ ...two, version: '2.0.0' })
    expect([before.handle, after.handle]).toEqual(['mod-words:1', 'mod-words:2'])
    expect(await readWord(runtime, before)).toBe(`one ${one.id}`)
    expect(await readWord(runtime, after)).toBe(`two ${two.id}`)
    expect(await runtime.deploy(one)).toEqual(before)
    expect((await runtime.list()).map(({ deployment }) => deployment)).toEqual([before, after])
  })

  test('the same image again is a deployment of its own', async () => {
    await using world = await startLambdaFixtures()
    const image = await pushWord(world, 'one')
    const deployments = [
      await world.runtime.deploy(deploymentSpecOf(image)),
      await world.runtime.deploy(deploymentSpecOf(image)),
    ]
    const said = await Promise.all(deployments.map((deployment) => readWord(world.runtime, deployment)))
    expect(said).toEqual(deployments.map(({ id }) => `one ${id}`))
  })

  test('two releases of a module at once each get their own image and their own environment', async () => {
    await using world = await startLambdaFixtures()
    await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'zero')))
    const words = ['one', 'two', 'three']
    const images = await Promise.all(words.map((word) => pushWord(world, word)))
    const deployments = await Promise.all(images.map((image) => world.another().deploy(deploymentSpecOf(image))))
    const said = await Promise.all(deployments.map((deployment) => readWord(world.runtime, deployment)))
    expect(said).toEqual(deployments.map(({ id }, index) => `${words[index]} ${id}`))
  })

  test('a function that somebody else changes is waited for', async () => {
    await using world = await startLambdaFixtures()
    await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    let looks = 0
    const runtime = world.another({}, async ({ method, path }, send) => {
      if (method === 'GET' && path.endsWith('/mod-words')) looks++
      return send()
    })
    const assignment = deploymentSpecOf(await pushWord(world, 'two'))
    world.lambda.hold()
    const deploying = runtime.deploy(assignment)
    await waitFor('it has looked five times', async () => looks >= 5)
    expect(await versionsOf(world)).toHaveLength(2)
    await world.lambda.release()
    expect(await readWord(world.runtime, await deploying)).toBe(`two ${assignment.id}`)
  })

  test('what somebody else has made of the function meanwhile is not published as one’s own', async () => {
    await using world = await startLambdaFixtures()
    const [mine, theirs] = [
      deploymentSpecOf(await pushWord(world, 'mine')),
      deploymentSpecOf(await pushWord(world, 'theirs')),
    ]
    const runtime = world.another({}, async ({ method, path }, send) => {
      if (method === 'POST' && path.endsWith('/versions')) await world.runtime.deploy(theirs)
      return send()
    })
    expect(await readWord(world.runtime, await runtime.deploy(mine))).toBe(`mine ${mine.id}`)
    expect(await versionsOf(world)).toHaveLength(3)
  })

  test('who is overtaken by itself does not begin again, whatever the function is by then', async () => {
    await using world = await startLambdaFixtures()
    const [mine, theirs] = [
      deploymentSpecOf(await pushWord(world, 'mine')),
      deploymentSpecOf(await pushWord(world, 'theirs')),
    ]
    const runtime = world.another({}, async ({ method, path }, send) => {
      if (method === 'POST' && path.endsWith('/versions')) {
        await world.runtime.deploy(mine)
        await world.runtime.deploy(theirs)
      }
      return send()
    })
    expect((await runtime.deploy(mine)).handle).toBe('mod-words:1')
    expect(await versionsOf(world)).toHaveLength(3)
  })

  test('a release is found among any number of versions', async () => {
    await using world = await startLambdaFixtures()
    const { client, runtime } = world
    const image = await pushWord(world, 'one')
    const FunctionName = 'mod-words'
    const often = { client, minDelay: 0.01, maxDelay: 0.02, maxWaitTime: 20 }
    await runtime.deploy(deploymentSpecOf(image))
    for (let index = 0; index < 55; index++) {
      const Environment = { Variables: { INDEX: String(index) } }
      await client.send(new UpdateFunctionConfigurationCommand({ FunctionName, Environment }))
      await waitUntilFunctionUpdatedV2(often, { FunctionName })
      await client.send(new PublishVersionCommand({ FunctionName }))
    }
    const [last, next] = [deploymentSpecOf(image), deploymentSpecOf(image)]
    const deployment = await runtime.deploy(last)
    await runtime.deploy(next)
    expect(deployment.handle).toBe('mod-words:57')
    expect(await runtime.deploy(last)).toEqual(deployment)
    expect((await runtime.list()).map((status) => status.deployment.id)).toContain(last.id)
  })

  test('what Lambda refuses to make is refused', async () => {
    await using world = await startLambdaFixtures()
    const assignment = deploymentSpecOf(await pushWord(world, 'one'))
    const runtime = world.another({ role: 'nobody' })
    await expect(runtime.deploy(assignment)).rejects.toMatchObject({
      problem: 'refused',
      message: expect.stringMatching(/^Lambda: ValidationException: /),
    })
  })

  test('what is not ready in time is unavailable for now, and found further by who comes next', async () => {
    await using world = await startLambdaFixtures()
    const assignment = deploymentSpecOf(await pushWord(world, 'one'))
    world.lambda.hold()
    const impatient = world.another({ patienceMs: 20 })
    await expect(impatient.deploy(assignment)).rejects.toMatchObject({ problem: 'unavailable' })
    await world.lambda.release()
    expect((await world.runtime.deploy(assignment)).handle).toBe('mod-words:1')
  })

  test.each(['before a call', 'after a call, whose answer is lost'])(
    'who is killed %s leaves what the next one goes on from, whichever call it is',
    async (when) => {
      await using world = await startLambdaFixtures()
      const image = await pushWord(world, 'one')
      let count = 0
      for (let dead = false, limit = 1; !dead; limit++) {
        const [assignment, next] = [deploymentSpecOf(image), deploymentSpecOf(await pushWord(world, `next ${limit}`))]
        const killedAt = (allowed: number) => {
          let calls = 0
          return world.another({}, async (_, send) => {
            calls++
            if (calls > allowed || (calls === allowed && when === 'before a call')) throw new Error('It was killed.')
            const answer = await send()
            if (calls === allowed) throw new Error('It was killed.')
            return answer
          })
        }
        dead = await killedAt(limit)
          .deploy(assignment)
          .then(
            () => true,
            () => false,
          )
        await killedAt(limit)
          .deploy(next)
          .catch(() => undefined)
        const [one, two] = [await world.runtime.deploy(assignment), await world.runtime.deploy(next)]
        expect(await lambdaResourcesOf(world, one)).toEqual([assignment.id, assignment.digest])
        expect(await lambdaResourcesOf(world, two)).toEqual([next.id, next.digest])
        expect(await versionsOf(world)).toHaveLength(3)
        // The second release goes first: what was begun may belong to it.
        await world.runtime.remove(two, 0)
        expect((await world.runtime.list()).map(({ deployment }) => deployment)).toEqual([one])
        await world.runtime.remove(one, 0)
        expect(await world.runtime.list()).toEqual([])
        count = limit
      }
      expect(count).toBeGreaterThan(5)
    },
  )

  test('an image that Lambda cannot unpack is refused, and the release before it serves on', async () => {
    await using world = await startLambdaFixtures()
    const { runtime, target, registry } = world
    const one = await runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    const image = await pushProgram(registry, 'modules/words', 'broken', { labels: { is: 'broken' } })
    const putManifest = target.putManifest.bind(target)
    target.putManifest = async (repository, ...rest) => {
      const { layers } = JSON.parse(Buffer.from(rest[1]).toString())
      for (const { digest } of layers) target.blobs.delete(`${repository} ${digest}`)
      return putManifest(repository, ...rest)
    }
    const broken = deploymentSpecOf(image)
    await expect(runtime.deploy(broken)).rejects.toMatchObject({
      problem: 'refused',
      message: expect.stringContaining('sha256:'),
    })
    target.putManifest = putManifest
    expect(await readWord(runtime, one)).toBe(`one ${one.id}`)
    const listed = (await runtime.list()).map(({ deployment, state }) => [deployment.id, state])
    expect(listed).toContainEqual([one.id, 'running'])
    const next = await runtime.deploy(deploymentSpecOf(await pushWord(world, 'next')))
    expect(await readWord(runtime, next)).toBe(`next ${next.id}`)
  })

  test('the same for a new module: nothing of it runs, and another try may have more luck', async () => {
    await using world = await startLambdaFixtures()
    const { runtime, target } = world
    const assignment = deploymentSpecOf(await pushWord(world, 'one'))
    const blob = target.blob.bind(target)
    target.blob = async (repository, descriptor, max) => {
      if (descriptor.size > 0 && max !== undefined && max > 2 ** 22) throw new Error('The layer is lost.')
      return blob(repository, descriptor, max)
    }
    await expect(runtime.deploy(assignment)).rejects.toMatchObject({ problem: 'refused' })
    target.blob = blob
    expect(await runtime.list()).toMatchObject([{ state: 'failed', lastCrash: 'The layer is lost.' }])
    const deployment = await runtime.deploy(assignment)
    expect(await readWord(runtime, deployment)).toBe(`one ${assignment.id}`)
  })
})

test('the name of a function is at most 64 characters long, and no two modules have the same', () => {
  expect(functionNameOf('platform-mod', 'hello')).toBe('platform-mod-hello')
  const long = 'x'.repeat(49)
  const names = ['a', 'b'].map((end) => functionNameOf('platform-production-mod', `${long}${end}`))
  expect(names.map((name) => name.length)).toEqual([64, 64])
  expect(names[0]).not.toBe(names[1])
  expect(functionNameOf('platform-mod', `${long}a`)).toBe(`platform-mod-${long}a`)
})
