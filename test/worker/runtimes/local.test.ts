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
  /** Behaviour that is the same in both modes is tested with processes by default. */
  const isSkipped = isMissing || !(isLong || mode === 'process')

  test.skipIf(isMissing)('runs a module from its image, and leaves nothing behind when it is removed', async () => {
    await using runtime = await localRuntime(mode)
    const marker = `marker-${mode}-${process.pid}`
    const image = await pushFixture(runtime.registry, 'calm', [marker])
    const deployment = await runtime.deploy(deploymentSpecOf(image))
    expect(deployment).toMatchObject({ runtime: mode, moduleId: 'calm', version: '1.0.0', digest: image.digest })
    const response = await runtime.request(deployment, { method: 'GET', path: '/api/calm' }, limits)
    expect(JSON.parse(textOf(response))).toMatchObject({ orgId: 'org_1', module: { id: 'calm' } })
    expect(await runtime.list()).toEqual([{ deployment, state: 'running', crashes: 0 }])
    expect(await processesWith(marker)).not.toEqual([])

    await Promise.all([runtime.remove(deployment, 20_000), runtime.remove(deployment, 20_000)])
    expect(runtime.lines.map(({ line }) => line)).toEqual(expect.arrayContaining(['stop', 'dispose']))
    expect(await processesWith(marker)).toEqual([])
    expect([await runtime.leftovers(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
    await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
    await runtime.remove(deployment, 0)
  })

  test.skipIf(isMissing)('creates one deployment for repeated and concurrent requests', async () => {
    await using runtime = await localRuntime(mode)
    const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const [one, two] = await Promise.all([runtime.deploy(spec), runtime.deploy(spec)])
    expect([two, await runtime.deploy(spec)]).toEqual([one, one])
    await runtime.remove(one, 0)
    expect(runtime.lines.filter(({ line }) => line.startsWith('puppet is up'))).toHaveLength(1)
  })

  test.skipIf(isSkipped)('separates two deployments of a module, which share its image', async () => {
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
  })

  test.skipIf(isMissing)(
    'passes the variables of the image and of the protocol to an instance, and no others',
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
      const spec = deploymentSpecOf(image, { moduleId: 'other', startsItself: false, organisationId: 'org_9' })
      const deployment = await runtime.deploy(spec)
      const variables: Record<string, string> = await evaluateInModule(runtime, deployment, 'process.env')
      const own = ['PLATFORM_SOCKET', ...(mode === 'process' ? ['TMPDIR'] : ['PATH', 'HOME'])]
      for (const name of own) expect(variables[name]).toMatch(/^\//)
      const rest = Object.entries(variables).filter(([name]) => !own.includes(name))
      expect(Object.fromEntries(rest)).toEqual({
        COLOUR: 'blue=green',
        EMPTY: '',
        PLATFORM_MODULE_TOKEN: `token of ${spec.id}`,
        PLATFORM_ORGANISATION_ID: 'org_9',
        PLATFORM_DEPLOYMENT_ID: spec.id,
        PLATFORM_MODULE_ID: 'other',
        PLATFORM_STARTS_ITSELF: '0',
      })
      expect(await evaluateInModule(runtime, deployment, 'process.cwd()')).toMatch(/\/app$/)
    },
  )

  test.skipIf(isMissing)('reports an instance that exits at start with its output, and removes it', async () => {
    await using runtime = await localRuntime(mode)
    const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'ends-at-once'))
    const deploying = [runtime.deploy(spec), runtime.deploy(spec)]
    for (const outcome of await Promise.allSettled(deploying)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { problem: 'init_failed' } })
      expect(String(Object(outcome).reason.message)).toMatch(/exit code 4.*There is nothing to do\./s)
    }
    expect([await runtime.leftovers(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
  })

  test.skipIf(isSkipped).each(['never-listens', 'never-answers'])(
    'times out for an instance that %s, and removes it',
    async (name) => {
      await using runtime = await localRuntime(mode, { readyMs: 700 })
      const marker = `marker-${name}-${mode}-${process.pid}`
      const deploying = runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, name, [marker])))
      await expect(deploying).rejects.toMatchObject({ problem: 'timeout' })
      expect([await processesWith(marker), await runtime.leftovers(), await runtime.unpacked()]).toEqual([[], [], []])
    },
  )

  test.skipIf(isSkipped)('stops an instance that is removed while it starts, and can deploy it again', async () => {
    await using runtime = await localRuntime(mode)
    const image = await pushProgram(runtime.registry, 'slow', `console.log('slow is up'); setInterval(() => {}, 1000)`)
    const spec = deploymentSpecOf(image)
    const deploying = expect(runtime.deploy(spec)).rejects.toMatchObject({ problem: 'unavailable' })
    await runtime.line(/slow is up/)
    const { id, moduleId, version, digest } = spec
    await runtime.remove({ id, moduleId, version, digest, runtime: mode, isolation: '', handle: '' }, 0)
    await deploying
    expect([await runtime.leftovers(), await runtime.unpacked()]).toEqual([[], []])
    const fine = await pushFixture(runtime.registry, 'puppet')
    expect(await runtime.deploy({ ...spec, ...fine })).toMatchObject({ id, digest: fine.digest })
  })

  test.skipIf(isSkipped)('runs an instance again that is deployed during its removal', async () => {
    await using runtime = await localRuntime(mode)
    const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const deployment = await runtime.deploy(spec)
    const removing = runtime.remove(deployment, 300)
    const again = await Promise.all([runtime.deploy(spec), runtime.deploy(spec)])
    await removing
    expect(again).toEqual([deployment, deployment])
    expect(await evaluateInModule(runtime, deployment, '1 + 1')).toBe(2)
    expect(runtime.lines.filter(({ line }) => line.startsWith('puppet is up'))).toHaveLength(2)
  })

  test.skipIf(isSkipped)('kills an instance that ignores SIGTERM, and removes it', async () => {
    await using runtime = await localRuntime(mode)
    const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'ignores-sigterm')))
    const removing = runtime.remove(deployment, 600)
    await runtime.line(/I stay/)
    await removing
    expect(await runtime.leftovers()).toEqual([])
  })

  test.skipIf(isSkipped)('rejects another image under the same id', async () => {
    await using runtime = await localRuntime(mode)
    const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const deployment = await runtime.deploy(spec)
    const other = await pushFixture(runtime.registry, 'calm')
    await expect(runtime.deploy({ ...spec, ...other })).rejects.toMatchObject({ problem: 'refused' })
    expect(await evaluateInModule(runtime, deployment, '1 + 1')).toBe(2)
  })

  test.skipIf(isSkipped)('ends all instances when it is closed, keeps images, and starts no more', async () => {
    await using runtime = await localRuntime(mode)
    const image = await pushFixture(runtime.registry, 'puppet')
    await runtime.deploy(deploymentSpecOf(image))
    await runtime.close(0)
    expect(await runtime.leftovers()).toEqual([])
    expect(await runtime.unpacked()).toHaveLength(1)
    await expect(runtime.deploy(deploymentSpecOf(image))).rejects.toMatchObject({ problem: 'unavailable' })
  })

  test.skipIf(isMissing)('restricts access to the socket folders, and describes its isolation briefly', async () => {
    await using runtime = await localRuntime(mode)
    const { handle } = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
    expect((await stat(join(runtime.folder, 'run'))).mode & 0o777).toBe(0o700)
    expect((await stat(dirname(handle))).mode & 0o777).toBe(0o700)
    expect(runtime.isolation.length).toBeLessThanOrEqual(200)
  })
})

test('rejects a socket folder with a too long path, and explains the limit', () => {
  expect(() => checkRunFolder(`/${'x'.repeat(89)}`)).not.toThrow()
  expect(() => checkRunFolder(`/${'x'.repeat(90)}`)).toThrow(/108 bytes.*choose a folder with a shorter path/)
})

test('rejects a missing image, an invalid reference and a broken image', async () => {
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
