import { shiftClock } from '@platform/core/clock'
import { type Deployment } from '@platform/core/modules/record'
import { type ModuleRuntime } from '@platform/worker/runtimes/port'
import { CrashCounter, restartDelayMs } from '@platform/worker/runtimes/supervisor'
import { describe, expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import { isLong } from '../../support/long.ts'
import {
  evaluateInModule,
  deploymentSpecOf,
  limits,
  localModes,
  localRuntime,
  processesWith,
} from '../../support/local-runtime.ts'
import { pushFixture, pushProgram } from '../../support/module-image.ts'

const get = { method: 'GET', path: '/' }

/** Makes a puppet exit, and expects that its request crashes. */
const crash = (runtime: ModuleRuntime, deployment: Deployment) =>
  expect(
    evaluateInModule(runtime, deployment, 'console.error("Out of order") ?? process.exit(7)'),
  ).rejects.toMatchObject({
    problem: 'crashed',
  })

const stateOf = async (runtime: ModuleRuntime) => (await runtime.list())[0]

const waitUntilRunning = (runtime: ModuleRuntime, crashes: number) =>
  waitFor('the module runs again', async () => {
    const status = await stateOf(runtime)
    return status?.state === 'running' && status.crashes === crashes
  })

/** Behaviour that is the same in both modes is tested with processes by default. */
const isTested = (mode: string) => isLong || mode === 'process'

describe.each(localModes)('as a %s%s', (mode, reason) => {
  const isMissing = reason !== ''

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
    expect(runtime.lines.map(({ line }) => line).filter((line) => line.startsWith('puppet'))).toEqual([
      'puppet is up 0',
      'puppet is up 1',
    ])
  })

  test.skipIf(isMissing || !isTested(mode))(
    'a module that crashes five times in ten minutes is not restarted',
    async () => {
      await using runtime = await localRuntime(mode, { pauseMs: () => 50 })
      const spec = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
      const deployment = await runtime.deploy(spec)
      await crash(runtime, deployment)
      await waitUntilRunning(runtime, 1)
      // The first crash is no longer recent.
      shiftClock(601_000)
      for (const crashes of [1, 2, 3, 4]) {
        await crash(runtime, deployment)
        await waitUntilRunning(runtime, crashes)
      }
      await crash(runtime, deployment)
      await waitFor('the module has failed', async () => (await stateOf(runtime))?.state === 'failed')
      expect(await stateOf(runtime)).toMatchObject({ crashes: 5, lastCrash: expect.stringContaining('exit code 7') })
      await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
      await expect(runtime.deploy(spec)).rejects.toMatchObject({ problem: 'crashed' })
      expect(runtime.lines.filter(({ line }) => line.startsWith('puppet'))).toHaveLength(6)
      await runtime.remove(deployment, 0)
      expect([await runtime.leftovers(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
    },
  )

  test.skipIf(isMissing || !isTested(mode))('a restart that does not become ready is another crash', async () => {
    await using runtime = await localRuntime(mode, { readyMs: 3000 })
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

  test.skipIf(isMissing || !isTested(mode))(
    'a module that is removed while it waits for its restart is not restarted',
    async () => {
      await using runtime = await localRuntime(mode)
      const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
      await crash(runtime, deployment)
      await waitFor('the module restarts', async () => (await stateOf(runtime))?.state === 'restarting')
      await runtime.remove(deployment, 0)
      expect([await runtime.leftovers(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
    },
  )

  test.skipIf(isMissing)('an instance whose watchdog is killed is replaced and leaves no process', async () => {
    await using runtime = await localRuntime(mode)
    const marker = `marker-guard-${mode}-${process.pid}`
    const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet', [marker])))
    const before = await processesWith(marker)
    expect(before).not.toEqual([])
    const [watchdog = 0] = await processesWith('read -r line', runtime.folder)
    process.kill(watchdog, 'SIGKILL')
    await waitUntilRunning(runtime, 1)
    expect(await evaluateInModule(runtime, deployment, '1 + 1')).toBe(2)
    const after = await processesWith(marker)
    expect(before.filter((id) => after.includes(id))).toEqual([])
  })

  test.skipIf(isMissing || !isTested(mode))('a spinning module is killed without effect on others', async () => {
    await using runtime = await localRuntime(mode)
    const marker = `marker-spin-${mode}-${process.pid}`
    const spinning = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet', [marker])))
    const calm = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'calm')))
    const spin = { method: 'POST', path: '/', body: Buffer.from('console.log("spins") ?? eval("for (;;);")') }
    const stuck = runtime.request(spinning, spin, { ...limits, timeoutMs: 1000 })
    await expect(stuck).rejects.toMatchObject({ problem: 'timeout' })
    expect((await runtime.request(calm, { method: 'GET', path: '/api/calm' }, limits)).status).toBe(200)
    await runtime.remove(spinning, 100)
    expect(await processesWith(marker)).toEqual([])
  })
})

/** Megabytes that a module prints. */
const printedMegabytes = isLong ? 1000 : 50

test(`a module that prints ${printedMegabytes} MB delays no other module, and its output is limited`, async () => {
  await using runtime = await localRuntime('process')
  const source = `
    import { writeSync } from 'node:fs'
    import { createServer } from 'node:http'
    const chunk = Buffer.alloc(1_000_000, 'a line of text without further meaning\\n')
    createServer((incoming, outgoing) => {
      if (incoming.url === '/flood') for (let n = 0; n < ${printedMegabytes}; ) try { n += writeSync(1, chunk) / 1e6 } catch {}
      outgoing.end('done')
    }).listen(process.env.PLATFORM_SOCKET)`
  const flooding = await runtime.deploy(deploymentSpecOf(await pushProgram(runtime.registry, 'flood', source)))
  const calm = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'calm')))
  const rssBefore = process.memoryUsage.rss()
  const startedAtMs = performance.now()
  const flood = { method: 'GET', path: '/flood' }
  const printing = runtime.request(flooding, flood, { ...limits, timeoutMs: 50_000 })
  await runtime.line(/a line of text/)
  expect((await runtime.request(calm, { method: 'GET', path: '/api/calm' }, limits)).status).toBe(200)
  expect((await printing).status).toBe(200)
  await runtime.line(/lines were dropped/)
  const seconds = Math.ceil((performance.now() - startedAtMs) / 1000)
  expect(runtime.lines.filter(({ moduleId }) => moduleId === 'flood').length).toBeLessThanOrEqual(201 * (seconds + 1))
  expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(200e6)
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
  expect(crashes).toMatchObject({ recent: 4, areTooMany: false, last: 'four' })
  shiftClock(599_000)
  crashes.record('five')
  expect(crashes).toMatchObject({ recent: 5, areTooMany: true, last: 'five' })
  shiftClock(2000)
  expect(crashes).toMatchObject({ recent: 1, areTooMany: false, last: 'five' })
})
