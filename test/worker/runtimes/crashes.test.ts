import { shiftClock } from '@platform/core/clock'
import { type Deployment } from '@platform/core/modules/record'
import { type ModuleRuntime } from '@platform/worker/runtimes/port'
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

/** Makes a puppet end, and answers what its request comes to. */
const crash = (runtime: ModuleRuntime, deployment: Deployment) =>
  expect(
    evaluateInModule(runtime, deployment, 'console.error("Out of order") ?? process.exit(7)'),
  ).rejects.toMatchObject({
    problem: 'crashed',
  })

const stateOf = async (runtime: ModuleRuntime) => (await runtime.list())[0]

const isBack = (runtime: ModuleRuntime, crashes: number) =>
  waitFor('it runs again', async () => {
    const status = await stateOf(runtime)
    return status?.state === 'running' && status.crashes === crashes
  })

/** Whether a mode shows what both do in the same way: by default one of them. */
const isShown = (mode: string) => isLong || mode === 'process'

describe.each(localModes)('as a %s%s', (mode, reason) => {
  const isMissing = reason !== ''

  test.skipIf(isMissing)('what crashes is unavailable until it runs again, and then starts itself', async () => {
    await using runtime = await localRuntime(mode)
    const assignment = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'), { startsItself: false })
    const deployment = await runtime.deploy(assignment)
    await crash(runtime, deployment)
    await waitFor('it restarts', async () => (await stateOf(runtime))?.state === 'restarting')
    await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
    await isBack(runtime, 1)
    expect((await stateOf(runtime))?.lastCrash).toMatch(/exit code 7.*Out of order/s)
    expect(await evaluateInModule(runtime, deployment, 'process.env.PLATFORM_STARTS_ITSELF')).toBe('1')
    expect(runtime.lines.map(({ line }) => line).filter((line) => line.startsWith('puppet'))).toEqual([
      'puppet is up 0',
      'puppet is up 1',
    ])
  })

  test.skipIf(isMissing || !isShown(mode))('what crashes five times in ten minutes is not started again', async () => {
    await using runtime = await localRuntime(mode, { pauseMs: () => 50 })
    const assignment = deploymentSpecOf(await pushFixture(runtime.registry, 'puppet'))
    const deployment = await runtime.deploy(assignment)
    await crash(runtime, deployment)
    await isBack(runtime, 1)
    // Long ago.
    shiftClock(601_000)
    for (const crashes of [1, 2, 3, 4]) {
      await crash(runtime, deployment)
      await isBack(runtime, crashes)
    }
    await crash(runtime, deployment)
    await waitFor('it has failed', async () => (await stateOf(runtime))?.state === 'failed')
    expect(await stateOf(runtime)).toMatchObject({ crashes: 5, lastCrash: expect.stringContaining('exit code 7') })
    await expect(runtime.request(deployment, get, limits)).rejects.toMatchObject({ problem: 'unavailable' })
    await expect(runtime.deploy(assignment)).rejects.toMatchObject({ problem: 'crashed' })
    expect(runtime.lines.filter(({ line }) => line.startsWith('puppet'))).toHaveLength(6)
    await runtime.remove(deployment, 0)
    expect([await runtime.remains(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
  })

  test.skipIf(isMissing || !isShown(mode))('what does not come up again has crashed again', async () => {
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
    await waitFor('it has crashed twice', async () => (await stateOf(runtime))?.crashes === 2)
    expect((await stateOf(runtime))?.lastCrash).toMatch(/did not listen/)
  })

  test.skipIf(isMissing || !isShown(mode))(
    'what is removed while it waits for its restart is not started again',
    async () => {
      await using runtime = await localRuntime(mode)
      const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet')))
      await crash(runtime, deployment)
      await waitFor('it restarts', async () => (await stateOf(runtime))?.state === 'restarting')
      await runtime.remove(deployment, 0)
      expect([await runtime.remains(), await runtime.unpacked(), await runtime.list()]).toEqual([[], [], []])
    },
  )

  test.skipIf(isMissing)('an instance whose guard is killed is replaced, and nothing is left of it', async () => {
    await using runtime = await localRuntime(mode)
    const marker = `marker-guard-${mode}-${process.pid}`
    const deployment = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'puppet', [marker])))
    const before = await processesWith(marker)
    expect(before).not.toEqual([])
    const [guard = 0] = await processesWith('read -r line', runtime.folder)
    process.kill(guard, 'SIGKILL')
    await isBack(runtime, 1)
    expect(await evaluateInModule(runtime, deployment, '1 + 1')).toBe(2)
    const after = await processesWith(marker)
    expect(before.filter((id) => after.includes(id))).toEqual([])
  })

  test.skipIf(isMissing || !isShown(mode))(
    'a module that spins is ended without its help, and others go on',
    async () => {
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
    },
  )
})

/** How many megabytes a module prints: too many in any case. */
const flood = isLong ? 1000 : 50

test(`a module that prints ${flood} MB holds up nobody, and little of it is passed on`, async () => {
  await using runtime = await localRuntime('process')
  const source = `
    import { writeSync } from 'node:fs'
    import { createServer } from 'node:http'
    const chunk = Buffer.alloc(1_000_000, 'a line of text that is of no use to anybody\\n')
    createServer((incoming, outgoing) => {
      if (incoming.url === '/flood') for (let n = 0; n < ${flood}; ) try { n += writeSync(1, chunk) / 1e6 } catch {}
      outgoing.end('done')
    }).listen(process.env.PLATFORM_SOCKET)`
  const flooding = await runtime.deploy(deploymentSpecOf(await pushProgram(runtime.registry, 'flood', source)))
  const calm = await runtime.deploy(deploymentSpecOf(await pushFixture(runtime.registry, 'calm')))
  const rssBefore = process.memoryUsage.rss()
  const begunAtMs = performance.now()
  const asked = { method: 'GET', path: '/flood' }
  const printing = runtime.request(flooding, asked, { ...limits, timeoutMs: 50_000 })
  await runtime.line(/a line of text/)
  expect((await runtime.request(calm, { method: 'GET', path: '/api/calm' }, limits)).status).toBe(200)
  expect((await printing).status).toBe(200)
  await runtime.line(/lines were dropped/)
  const seconds = Math.ceil((performance.now() - begunAtMs) / 1000)
  expect(runtime.lines.filter(({ moduleId }) => moduleId === 'flood').length).toBeLessThanOrEqual(201 * (seconds + 1))
  expect(process.memoryUsage.rss() - rssBefore).toBeLessThan(200e6)
})
