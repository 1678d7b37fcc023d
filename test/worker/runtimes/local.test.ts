import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkRunFolder } from '@platform/worker/runtimes/supervised'
import { describe, expect, test } from 'vitest'
import {
  deploymentSpecOf,
  evaluateInModule,
  limits,
  localModes,
  localRuntime,
  processesWith,
  textOf,
} from '../../support/local-runtime.ts'
import { pushFixture, pushProgram } from '../../support/module-image.ts'
import { isLong } from '../../support/long.ts'

const get = { method: 'GET', path: '/' }

describe.each(localModes)('as a %s%s', (mode, reason) => {
  const isMissing = reason !== ''
  /** What is the same code for both is shown with processes by default. */
  const isLeftOut = isMissing || !(isLong || mode === 'process')

  test.skipIf(isMissing)(
    'a module runs from its image, can be asked, and leaves nothing when it is removed',
    async () => {
      await using runtime = await localRuntime(mode)
      const marker = `marker-${mode}-${process.pid}`
      const image = await pushFixture(runtime.registry, 'calm', [marker])
      const deployment = await runtime.deploy(deploymentSpecOf(image))
      expect(deployment).toMatchObject({ runtime: mode, moduleId: 'calm', version: '1.0.0', digest: image.digest })
      const answer = await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)
      expect(JSON.parse(textOf(answer))).toMatchObject({ orgId: 'org_1', module: { id: 'calm' } })
      expect(await runtime.list()).toEqual([{ deployment, state: 'running', crashes: 0 }])
      expect(await processesWith(marker)).not.toEqual([])

      await Promise.all([runtime.remove(deployment, 20_000), runtime.remove(deployment, 20_000)])
      expect(runtime.lines.map(({ line }) => line)).toEqual(expect.arrayContaining(['stop', 'dispose']))
      expect(await processesWith(marker)).toEqual([])
      expect([await runtime.remains(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
      await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
      await runtime.remove(deployment, 0)
    },
  )

  test.skipIf(isMissing)('the same assignment twice, also at once, is one deployment', async () => {
    await using runtime = await localRuntime(mode)
    const assignment = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const [one, two] = await Promise.all([runtime.deploy(assignment), runtime.deploy(assignment)])
    expect([two, await runtime.deploy(assignment)]).toEqual([one, one])
    await runtime.remove(one, 0)
    expect(runtime.lines.filter(({ line }) => line.startsWith('puppet is up'))).toHaveLength(1)
  })

  test.skipIf(isLeftOut)(
    'two deployments of a module are two, and removing one leaves the other its image',
    async () => {
      await using runtime = await localRuntime(mode)
      const image = await pushFixture(runtime.registry, 'puppet')
      const [one, two] = await Promise.all([
        runtime.deploy(deploymentSpecOf(image)),
        runtime.deploy(deploymentSpecOf(image)),
      ])
      await evaluateInModule(runtime, one, 'globalThis.name = "one"')
      expect(await evaluateInModule(runtime, two, 'globalThis.name ?? "none"')).toBe('none')
      await runtime.remove(one, 0)
      expect(await evaluateInModule(runtime, two, `(await import('node:fs')).existsSync(process.argv[1])`)).toBe(true)
      await runtime.remove(two, 0)
      expect(await runtime.unpacked()).toEqual([])
    },
  )

  test.skipIf(isMissing)(
    'an instance is told the image’s variables and the protocol’s, and nothing of the platform',
    async () => {
      await using runtime = await localRuntime(mode)
      const Env = [
        'COLOUR=blue=green',
        'EMPTY=',
        'PLATFORM_MODULE_TOKEN=forged',
        'PLATFORM_OTHER=x',
        'broken',
        '1=2',
        'A=\0',
      ]
      const image = await pushFixture(runtime.registry, 'puppet', [], { Env })
      const assignment = deploymentSpecOf(image, { moduleId: 'told', startsItself: false, organisationId: 'org_9' })
      const deployment = await runtime.deploy(assignment)
      const variables: Record<string, string> = await evaluateInModule(runtime, deployment, 'process.env')
      const own = ['PLATFORM_SOCKET', ...(mode === 'process' ? ['TMPDIR'] : ['PATH', 'HOME'])]
      for (const name of own) expect(variables[name]).toMatch(/^\//)
      const rest = Object.entries(variables).filter(([name]) => !own.includes(name))
      expect(Object.fromEntries(rest)).toEqual({
        COLOUR: 'blue=green',
        EMPTY: '',
        PLATFORM_MODULE_TOKEN: `token of ${assignment.id}`,
        PLATFORM_ORGANISATION_ID: 'org_9',
        PLATFORM_DEPLOYMENT_ID: assignment.id,
        PLATFORM_MODULE_ID: 'told',
        PLATFORM_STARTS_ITSELF: '0',
      })
      expect(await evaluateInModule(runtime, deployment, 'process.cwd()')).toMatch(/\/app$/)
    },
  )

  test.skipIf(isMissing)(
    'what ends at once has failed to start, with what it printed, and leaves nothing',
    async () => {
      await using runtime = await localRuntime(mode)
      const assignment = deploymentSpecOf(await pushFixture(runtime.registry, 'ends-at-once'))
      const deploying = [runtime.deploy(assignment), runtime.deploy(assignment)]
      for (const outcome of await Promise.allSettled(deploying)) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { problem: 'init_failed' } })
        expect(String(Object(outcome).reason.message)).toMatch(/exit code 4.*There is nothing to do\./s)
      }
      expect([await runtime.remains(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
    },
  )

  test.skipIf(isLeftOut).each(['never-listens', 'never-answers'])(
    'what %s has timed out, and leaves nothing',
    async (name) => {
      await using runtime = await localRuntime(mode, { readyMs: 700 })
      const marker = `marker-${name}-${mode}-${process.pid}`
      const deploying = runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, name, [marker])))
      await expect(deploying).rejects.toMatchObject({ problem: 'timeout' })
      expect([await processesWith(marker), await runtime.remains(), await runtime.unpacked()]).toEqual([[], [], []])
    },
  )

  test.skipIf(isLeftOut)('what is removed while it starts does not start, and can be deployed again', async () => {
    await using runtime = await localRuntime(mode)
    const image = await pushProgram(runtime.registry, 'slow', `console.log('slow is up'); setInterval(() => {}, 1000)`)
    const assignment = deploymentSpecOf(image)
    const deploying = expect(runtime.deploy(assignment)).rejects.toMatchObject({ problem: 'unavailable' })
    await runtime.line(/slow is up/)
    const { id, moduleId, version, digest } = assignment
    await runtime.remove({ id, moduleId, version, digest, runtime: mode, isolation: '', handle: '' }, 0)
    await deploying
    expect([await runtime.remains(), await runtime.unpacked()]).toEqual([[], []])
    const fine = await pushFixture(runtime.registry, 'puppet')
    expect(await runtime.deploy({ ...assignment, ...fine })).toMatchObject({ id, digest: fine.digest })
  })

  test.skipIf(isLeftOut)('what is deployed again while it is removed runs afterwards', async () => {
    await using runtime = await localRuntime(mode)
    const assignment = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const deployment = await runtime.deploy(assignment)
    const removing = runtime.remove(deployment, 300)
    const again = await Promise.all([runtime.deploy(assignment), runtime.deploy(assignment)])
    await removing
    expect(again).toEqual([deployment, deployment])
    expect(await evaluateInModule(runtime, deployment, '1 + 1')).toBe(2)
    expect(runtime.lines.filter(({ line }) => line.startsWith('puppet is up'))).toHaveLength(2)
  })

  test.skipIf(isLeftOut)('a removal waits for the module, but no longer than its grace', async () => {
    await using runtime = await localRuntime(mode)
    const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'ignores-sigterm')))
    const begunAtMs = performance.now()
    const removing = runtime.remove(deployment, 600)
    await runtime.line(/I stay/)
    await removing
    expect(performance.now() - begunAtMs).toBeGreaterThan(590)
    expect(await runtime.remains()).toEqual([])
  })

  test.skipIf(isLeftOut)('another image under the same id is refused', async () => {
    await using runtime = await localRuntime(mode)
    const assignment = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const deployment = await runtime.deploy(assignment)
    const other = await pushFixture(runtime.registry, 'calm')
    await expect(runtime.deploy({ ...assignment, ...other })).rejects.toMatchObject({ problem: 'refused' })
    expect(await evaluateInModule(runtime, deployment, '1 + 1')).toBe(2)
  })

  test.skipIf(isLeftOut)(
    'a runtime that is closed has ended all, keeps the images, and starts nothing more',
    async () => {
      await using runtime = await localRuntime(mode)
      const image = await pushFixture(runtime.registry, 'puppet')
      await runtime.deploy(deploymentSpecOf(image))
      await runtime.close(0)
      expect(await runtime.remains()).toEqual([])
      expect(await runtime.unpacked()).toHaveLength(1)
      await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({ problem: 'unavailable' })
    },
  )

  test.skipIf(isMissing)('sockets are in a folder that nobody else can enter', async () => {
    await using runtime = await localRuntime(mode)
    const { handle } = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
    expect((await stat(join(runtime.folder, 'run'))).mode & 0o777).toBe(0o700)
    expect((await stat(dirname(handle))).mode & 0o777).toBe(0o700)
  })

  test.skipIf(isMissing)('isolation is told in words that the platform can show', async () => {
    await using runtime = await localRuntime(mode)
    expect(runtime.isolation.length).toBeLessThanOrEqual(200)
  })
})

test('a folder for sockets whose paths would be too long is refused, and the message says what to do', () => {
  expect(() => checkRunFolder(`/${'x'.repeat(89)}`)).not.toThrow()
  expect(() => checkRunFolder(`/${'x'.repeat(90)}`)).toThrow(/108 bytes.*choose a folder with a shorter path/)
})

test('an image that is not to be had is refused, and so is what is no image', async () => {
  await using runtime = await localRuntime('process')
  const image = await pushFixture(runtime.registry, 'puppet')
  const absent = { ...image, digest: `sha256:${'0'.repeat(64)}` }
  await expect(runtime.deploy(deploymentSpecOf(absent))).rejects.toMatchObject({ problem: 'refused' })
  await expect(runtime.deploy(deploymentSpecOf({ ...image, repository: '///' }))).rejects.toMatchObject({
    problem: 'refused',
  })
  for (const key of runtime.registry.blobs.keys()) runtime.registry.blobs.set(key, Buffer.from('broken'))
  await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({ problem: 'refused' })
  expect(await runtime.unpacked()).toEqual([])
})
