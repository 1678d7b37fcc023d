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
import { shiftClock } from '@platform/core/clock'
import type { Deployment } from '@platform/core/modules/deployment'
import type { ModuleRuntime } from '@platform/worker/runtimes/port'
import { CrashCounter, restartDelayMs } from '@platform/worker/runtimes/supervisor'
import { waitFor } from '../../support/wait-for.ts'

const get = { method: 'GET', path: '/' }

const crash = async (runtime: ModuleRuntime, deployment: Deployment) => {
  const crashing = evaluateInModule(runtime, deployment, 'console.error("Out of order") ?? process.exit(7)')
  await expect(crashing).rejects.toMatchObject({ problem: 'crashed' })
}

const stateOf = async (runtime: ModuleRuntime) => (await runtime.list())[0]

const waitUntilRunning = (runtime: ModuleRuntime, crashes: number) =>
  waitFor('the module runs again', async () => {
    const status = await stateOf(runtime)
    return status?.state === 'running' && status.crashes === crashes
  })

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
    // The user of module processes may pass through the folder.
    const folderMode = mode === 'process' && process.getuid?.() === 0 ? 0o710 : 0o700
    for (const folder of [join(runtime.folder, 'run'), dirname(deployment.handle)])
      expect((await stat(folder)).mode & 0o777).toBe(folderMode)
    expect(runtime.isolation.length).toBeLessThanOrEqual(200)

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
    const [deployment, otherDeployment] = await Promise.all([runtime.deploy(spec), runtime.deploy(spec)])
    expect([otherDeployment, await runtime.deploy(spec)]).toEqual([deployment, deployment])
    await runtime.remove(deployment, 0)
    expect(runtime.lines.filter(({ line }) => line.startsWith('puppet is up'))).toHaveLength(1)
  })

  test.skipIf(isSkipped)('separates two deployments of a module, which share its image', async () => {
    await using runtime = await localRuntime(mode)
    const image = await pushFixture(runtime.registry, 'puppet')
    const [a, b] = [await runtime.deploy(deploymentSpecOf(image)), await runtime.deploy(deploymentSpecOf(image))]
    await evaluateInModule(runtime, a, 'globalThis.name = "one"')
    expect(await evaluateInModule(runtime, b, 'globalThis.name ?? "none"')).toBe('none')
    await runtime.remove(a, 0)
    expect(await evaluateInModule(runtime, b, `(await import('node:fs')).existsSync(process.argv[1])`)).toBe(true)
    await runtime.remove(b, 0)
    expect(await runtime.unpacked()).toEqual([])
  })

  test.skipIf(isMissing)(
    'passes the variables of the image and of the protocol to an instance, and no others',
    async () => {
      await using runtime = await localRuntime(mode)
      const rejectedVariables = ['PLATFORM_MODULE_TOKEN=forged', 'PLATFORM_OTHER=x', 'broken', '1=2', 'A=\0']
      const Env = ['COLOUR=blue=green', 'EMPTY=', ...rejectedVariables]
      const image = await pushFixture(runtime.registry, 'puppet', [], { Env })
      const spec = deploymentSpecOf(image, { moduleId: 'other', startsItself: false, organisationId: 'org_9' })
      const deployment = await runtime.deploy(spec)
      const variables: Record<string, string> = await evaluateInModule(runtime, deployment, 'process.env')
      const ownNames = ['PLATFORM_SOCKET', ...(mode === 'process' ? ['TMPDIR'] : ['PATH', 'HOME'])]
      for (const name of ownNames) expect(variables[name]).toMatch(/^\//)
      const otherVariables = Object.entries(variables).filter(([name]) => !ownNames.includes(name))
      expect(Object.fromEntries(otherVariables)).toEqual({
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
    const validImage = await pushFixture(runtime.registry, 'puppet')
    expect(await runtime.deploy({ ...spec, ...validImage })).toMatchObject({ id, digest: validImage.digest })
  })

  test.skipIf(isSkipped)('runs an instance again if it is deployed during its removal', async () => {
    await using runtime = await localRuntime(mode)
    const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const deployment = await runtime.deploy(spec)
    const removing = runtime.remove(deployment, 300)
    const secondDeployments = await Promise.all([runtime.deploy(spec), runtime.deploy(spec)])
    await removing
    expect(secondDeployments).toEqual([deployment, deployment])
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
    const otherImage = await pushFixture(runtime.registry, 'calm')
    await expect(runtime.deploy({ ...spec, ...otherImage })).rejects.toMatchObject({ problem: 'refused' })
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

  test.skipIf(isMissing)('a crashed module is unavailable until its restart, and then starts itself', async () => {
    await using runtime = await localRuntime(mode)
    const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'), { startsItself: false })
    const deployment = await runtime.deploy(spec)
    await crash(runtime, deployment)
    await waitFor('the module restarts', async () => (await stateOf(runtime))?.state === 'restarting')
    await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
    await waitUntilRunning(runtime, 1)
    expect((await stateOf(runtime))?.lastCrash).toMatch(/exit code 7.*Out of order/s)
    expect(await evaluateInModule(runtime, deployment, 'process.env.PLATFORM_STARTS_ITSELF')).toBe('1')
    const starts = runtime.lines.map(({ line }) => line).filter((line) => line.startsWith('puppet'))
    expect(starts).toEqual(['puppet is up 0', 'puppet is up 1'])
  })

  test.skipIf(isSkipped)('a module that crashes five times in ten minutes is not restarted', async () => {
    await using runtime = await localRuntime(mode, { pauseMs: () => 50 })
    const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const deployment = await runtime.deploy(spec)
    for (const crashes of [1, 2, 3, 4]) {
      await crash(runtime, deployment)
      await waitUntilRunning(runtime, crashes)
    }
    await crash(runtime, deployment)
    await waitFor('the module has failed', async () => (await stateOf(runtime))?.state === 'failed')
    expect(await stateOf(runtime)).toMatchObject({ crashes: 5, lastCrash: expect.stringContaining('exit code 7') })
    await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
    await expect(runtime.deploy(spec)).rejects.toMatchObject({ problem: 'crashed' })
    expect(runtime.lines.filter(({ line }) => line.startsWith('puppet'))).toHaveLength(5)
    await runtime.remove(deployment, 0)
    expect([await runtime.leftovers(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
  })

  test.skipIf(isSkipped)('a restart that does not become ready is another crash', async () => {
    await using runtime = await localRuntime(mode, { readyMs: 5000 })
    const source = `
      import { createServer } from 'node:http'
      const server = createServer(({ url }, outgoing) => (url === '/end' ? process.exit(1) : outgoing.end()))
      if (process.env.PLATFORM_STARTS_ITSELF === '0') server.listen(process.env.PLATFORM_SOCKET)
      else setInterval(() => {}, 1000)`
    const image = await pushProgram(runtime.registry, 'once', source)
    const deployment = await runtime.deploy(deploymentSpecOf(image, { startsItself: false }))
    const ending = runtime.request(deployment, { method: 'GET', path: '/end' }, limits)
    await expect(ending).rejects.toMatchObject({ problem: 'crashed' })
    await waitFor('the module has crashed twice', async () => (await stateOf(runtime))?.crashes === 2)
    expect((await stateOf(runtime))?.lastCrash).toMatch(/did not respond/)
  })

  test.skipIf(isSkipped)('a module that is removed while it waits for its restart is not restarted', async () => {
    await using runtime = await localRuntime(mode)
    const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
    await crash(runtime, deployment)
    await waitFor('the module restarts', async () => (await stateOf(runtime))?.state === 'restarting')
    await runtime.remove(deployment, 0)
    expect([await runtime.leftovers(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
  })

  test.skipIf(isMissing)('an instance whose watchdog is killed is replaced and leaves no process', async () => {
    await using runtime = await localRuntime(mode)
    const marker = `marker-guard-${mode}-${process.pid}`
    const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet', [marker])))
    const processesBefore = await processesWith(marker)
    expect(processesBefore).not.toEqual([])
    const [watchdog = 0] = await processesWith('read -r line', runtime.folder)
    process.kill(watchdog, 'SIGKILL')
    await waitUntilRunning(runtime, 1)
    expect(await evaluateInModule(runtime, deployment, '1 + 1')).toBe(2)
    const processesAfter = await processesWith(marker)
    expect(processesBefore.filter((id) => processesAfter.includes(id))).toEqual([])
  })
})

test('rejects a socket folder whose path is too long, and explains the limit', () => {
  expect(() => checkRunFolder(`/${'x'.repeat(89)}`)).not.toThrow()
  expect(() => checkRunFolder(`/${'x'.repeat(90)}`)).toThrow(/108 bytes.*choose a folder with a shorter path/)
})

test('rejects a missing image, an invalid reference and a broken image', async () => {
  await using runtime = await localRuntime('process')
  const image = await pushFixture(runtime.registry, 'puppet')
  for (const key of runtime.registry.blobs.keys()) runtime.registry.blobs.set(key, Buffer.from('broken'))
  for (const change of [{ digest: `sha256:${'0'.repeat(64)}` }, { repository: '///' }, {}]) {
    const deploying = runtime.deploy(deploymentSpecOf({ ...image, ...change }))
    await expect(deploying).rejects.toMatchObject({ problem: 'refused' })
  }
  expect(await runtime.unpacked()).toEqual([])
})

test('restart delays double from half a second to half a minute, with jitter', () => {
  for (const [crashes, maxMs] of [
    [1, 500],
    [2, 1000],
    [3, 2000],
    [4, 4000],
    [7, 30_000],
    [1000, 30_000],
  ] as const) {
    const delays = Array.from({ length: 100 }, () => restartDelayMs(crashes))
    expect(Math.max(...delays)).toBeLessThanOrEqual(maxMs)
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(maxMs * 0.75)
    expect(new Set(delays).size).toBeGreaterThan(50)
  }
})

test('counts the crashes of the last ten minutes, at most four', () => {
  const crashes = new CrashCounter()
  for (const reason of ['one', 'two', 'three', 'four']) crashes.record(reason)
  expect(crashes).toMatchObject({ recentCount: 4, hasReachedLimit: false, lastReason: 'four' })
  shiftClock(599_000)
  crashes.record('five')
  expect(crashes).toMatchObject({ recentCount: 5, hasReachedLimit: true, lastReason: 'five' })
  shiftClock(2000)
  expect(crashes).toMatchObject({ recentCount: 1, hasReachedLimit: false, lastReason: 'five' })
})
