import { CreateFunctionCommand, GetFunctionConfigurationCommand, ListTagsCommand } from '@aws-sdk/client-lambda'
import { describe, expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import {
  startLambdaFixtures,
  type LambdaFixtures,
  pushWord,
  readWord,
  versionsOf,
} from '../../support/lambda-runtime.ts'
import { deploymentSpecOf } from '../../support/local-runtime.ts'
import { pushProgram } from '../../support/module-image.ts'

/** What was begun and is not ready. */
const begunIn = async ({ runtime }: LambdaFixtures) =>
  (await runtime.list()).find(({ state }) => state === 'restarting')?.deployment

describe('removing', () => {
  test('a release leaves the other one; with the last one function and images go', async () => {
    await using world = await startLambdaFixtures()
    const { runtime } = world
    const [one, two] = [
      await runtime.deploy(deploymentSpecOf(await pushWord(world, 'one'))),
      await runtime.deploy(deploymentSpecOf(await pushWord(world, 'two'))),
    ]
    await runtime.remove(one, 0)
    await expect(readWord(runtime, one)).rejects.toMatchObject({ problem: 'unavailable' })
    expect(await readWord(runtime, two)).toBe(`two ${two.id}`)
    await runtime.remove(one, 0)
    expect(world.target.manifests.size).toBe(2)
    await runtime.remove(two, 0)
    await runtime.remove(two, 0)
    expect(await runtime.list()).toEqual([])
    expect(world.target.manifests.size).toBe(0)
    await expect(readWord(runtime, two)).rejects.toMatchObject({ problem: 'unavailable' })
  })

  test('what somebody else removes at the same time is fine', async () => {
    await using world = await startLambdaFixtures()
    const one = await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    const runtime = world.another({}, async ({ method }, send) => {
      if (method === 'DELETE') await world.runtime.remove(one, 0)
      return send()
    })
    await runtime.remove(one, 0)
    expect(await runtime.list()).toEqual([])
  })

  test('the newer release first leaves nothing of it, its token included', async () => {
    await using world = await startLambdaFixtures()
    const { runtime } = world
    const one = await runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    const two = await runtime.deploy(deploymentSpecOf(await pushWord(world, 'two')))
    await runtime.remove(two, 0)
    const latest = await world.client.send(new GetFunctionConfigurationCommand({ FunctionName: 'mod-words' }))
    expect(latest.Environment?.Variables ?? {}).toEqual({})
    expect((await runtime.list()).map(({ deployment }) => deployment)).toEqual([one])
    await runtime.remove(one, 0)
    expect(await runtime.list()).toEqual([])
  })

  test('waits where the function is being changed', async () => {
    await using world = await startLambdaFixtures()
    const one = await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    const two = await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'two')))
    world.lambda.hold()
    const begun = world.another({ patienceMs: 10 }).deploy(deploymentSpecOf(await pushWord(world, 'three')))
    await expect(begun).rejects.toMatchObject({ problem: 'unavailable' })
    // Its image is there, its environment not yet: it is nobody's.
    expect(await begunIn(world)).toBeUndefined()
    let refusals = 0
    const removing = world
      .another({}, async ({ method }, send) => {
        const answer = await send()
        if (method === 'PUT' && answer.response.statusCode === 409) refusals++
        return answer
      })
      .remove(two, 0)
    await waitFor('it was refused twice', async () => refusals >= 2)
    await world.lambda.release()
    await removing
    expect((await world.runtime.list()).map(({ deployment }) => deployment)).toEqual([one])
  })

  test('what was begun and never published is listed, and can be removed', async () => {
    await using world = await startLambdaFixtures()
    const one = await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    const unlucky = world.another({}, async ({ method, path }, send) => {
      if (method === 'POST' && path.endsWith('/versions')) throw new Error('It was killed.')
      return send()
    })
    const assignment = deploymentSpecOf(await pushWord(world, 'two'))
    await expect(unlucky.deploy(assignment)).rejects.toMatchObject({ problem: 'unavailable' })
    const begun = await begunIn(world)
    expect(begun).toMatchObject({ id: assignment.id, handle: 'mod-words:$LATEST' })
    expect(await readWord(world.runtime, begun!)).toBe(`two ${assignment.id}`)
    await world.runtime.remove(begun!, 0)
    expect((await world.runtime.list()).map(({ deployment }) => deployment)).toEqual([one])
    const other = deploymentSpecOf(await pushWord(world, 'alone', 'modules/alone'))
    await expect(unlucky.deploy(other)).rejects.toMatchObject({ problem: 'unavailable' })
    const alone = await begunIn(world)
    await world.runtime.remove(alone!, 0)
    expect(await versionsOf(world, 'mod-alone').catch(({ name }) => name)).toBe('ResourceNotFoundException')
  })

  test('the last release does not take the function from one that is being deployed', async () => {
    await using world = await startLambdaFixtures()
    const one = await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    const assignment = deploymentSpecOf(await pushWord(world, 'two'))
    const slow = world.another({}, async ({ method, path }, send) => {
      if (method === 'POST' && path.endsWith('/versions')) await world.runtime.remove(one, 0)
      return send()
    })
    const two = await slow.deploy(assignment)
    expect(await readWord(world.runtime, two)).toBe(`two ${assignment.id}`)
    expect((await world.runtime.list()).map(({ deployment }) => deployment)).toEqual([two])
  })

  test('a function that was deleted under a deployment is made again', async () => {
    await using world = await startLambdaFixtures()
    const one = await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    let isRemoved = false
    const slow = world.another({}, async ({ method, path }, send) => {
      if (method === 'PUT' && path.endsWith('/code') && !isRemoved) {
        isRemoved = true
        await world.runtime.remove(one, 0)
        await slow.deploy(assignment)
      }
      return send()
    })
    const assignment = deploymentSpecOf(await pushWord(world, 'two'))
    const two = await slow.deploy(assignment)
    expect(await readWord(world.runtime, two)).toBe(`two ${assignment.id}`)
  })
})

describe('listing', () => {
  test('finds every module among all functions of the account, and nothing else', async () => {
    await using world = await startLambdaFixtures()
    const { digest } = await pushProgram(world.target, 'foreign', '')
    const ImageUri = `lambda.test/foreign@${digest}`
    const Role = 'arn:aws:iam::000000000000:role/another'
    for (let index = 0; index < 55; index++) {
      const FunctionName = `mod-${String(index).padStart(2, '0')}`
      await world.client.send(
        new CreateFunctionCommand({ FunctionName, PackageType: 'Image', Code: { ImageUri }, Role }),
      )
    }
    const deployed = [
      await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'z', 'modules/zebra'))),
      await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'a', 'modules/aardvark'))),
    ]
    const listed = (await world.runtime.list()).map(({ deployment }) => deployment)
    expect(new Set(listed)).toEqual(new Set(deployed))
    const stranger = world.another({ prefix: 'mod-other' })
    expect(await stranger.list()).toEqual([])
    const strange = await stranger.deploy(deploymentSpecOf(await pushWord(world, 's', 'modules/strange')))
    expect((await stranger.list()).map(({ deployment }) => deployment)).toEqual([strange])
    expect(await world.runtime.list()).toHaveLength(2)
  })

  test('a module that Lambda has put to sleep runs, and the first request wakes it', async () => {
    await using world = await startLambdaFixtures()
    const deployment = await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    world.lambda.deactivate('mod-words', '1')
    expect(await world.runtime.list()).toEqual([{ deployment, state: 'running', crashes: 0 }])
    await expect(readWord(world.runtime, deployment)).rejects.toMatchObject({ problem: 'unavailable' })
    const woken = async () => readWord(world.runtime, deployment).catch(() => undefined)
    expect(await waitFor('it is awake', woken)).toBe(`one ${deployment.id}`)
  })

  test('functions say whose they are to operators, too', async () => {
    await using world = await startLambdaFixtures()
    await world.runtime.deploy(deploymentSpecOf(await pushWord(world, 'one')))
    const Resource = 'arn:aws:lambda:us-east-1:000000000000:function:mod-words'
    const { Tags } = await world.client.send(new ListTagsCommand({ Resource }))
    expect(Tags).toEqual({ 'platform:prefix': 'mod', 'platform:module': 'words' })
  })
})
