import { type CloudEvent } from '@platform/contract/event'
import { deliverEvents } from '@platform/worker/modules/lifecycle/events'
import { runJob } from '@platform/worker/modules/lifecycle/jobs'
import { runLifecycle } from '@platform/worker/modules/lifecycle/run'
import { probe } from '@platform/worker/modules/lifecycle/probe'
import { shutDown } from '@platform/worker/modules/lifecycle/shut-down'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { fixture, ModuleProcesses } from '../../support/module-process.ts'
import { manifestFor } from '../../support/module-manifest.ts'

/** A module that was deployed, and loaded as far as it goes. */
async function running(command: string, moduleId = command, { isLoaded = true } = {}) {
  const runtime = new ModuleProcesses()
  onTestFinished(() => runtime[Symbol.asyncDispose]())
  const assignment = { id: 'd', moduleId, version: '1.0.0', repository: fixture(command), digest: 'sha256:0' }
  const deployment = await runtime.deploy({ ...assignment, organisationId: 'org_acme', startsItself: false })
  if (isLoaded)
    await runLifecycle(runtime, [{ deployment, manifest: manifestFor(moduleId) }], { hookMs: 1000, probeMs: 0 })
  return { runtime, deployment }
}

const raw = (command: string) => running(command, command, { isLoaded: false })

const event = (id: string): CloudEvent => ({
  specversion: '1.0',
  id,
  source: '/organisations/org_acme',
  type: 'platform.cluster.deleted',
  subject: 'clus_1',
  time: '2026-11-21T09:30:00.000Z',
  datacontenttype: 'application/json',
  data: { clusterId: 'clus_1', name: 'berlin-1' },
})

const check = (name: string, path = `/health/${name}`) => ({ name, path, tags: ['critical' as const] })

/** A second or two each; by default a probe shows it. */
const slow = isLong ? ['never-answers'] : []

describe('a probe', () => {
  test('asks the endpoint and every check of the manifest', async () => {
    const { runtime, deployment } = await running('calm')
    const manifest = manifestFor('calm', { healthChecks: [check('calmness'), check('missing')] })
    expect(await probe(runtime, deployment, manifest)).toEqual({
      answers: true,
      isHealthy: true,
      checks: [
        {
          name: 'calmness',
          status: 'Healthy',
          tags: ['critical'],
          description: '',
          durationMs: expect.any(Number),
          checkedAtMs: expect.any(Number),
        },
        expect.objectContaining({ name: 'missing', status: 'Unhealthy', description: 'It answers 404.' }),
      ],
      published: [],
    })
  })

  test('tells a module that is unwell from one that does not answer', async () => {
    const unwell = await running('unhealthy')
    const manifest = manifestFor('unhealthy', { healthChecks: [check('database')] })
    expect(await probe(unwell.runtime, unwell.deployment, manifest)).toMatchObject({
      answers: true,
      isHealthy: false,
      checks: [{ status: 'Unhealthy', description: 'No database.' }],
    })
    await unwell.runtime.end(unwell.deployment, 'SIGKILL')
    expect(await probe(unwell.runtime, unwell.deployment, manifest)).toMatchObject({
      answers: false,
      isHealthy: false,
      checks: [{ status: 'Unhealthy', description: 'It does not run.' }],
    })
  })

  test('takes the status of an answer for the result where a check says no more', async () => {
    const { runtime, deployment } = await raw('no-protocol')
    const manifest = manifestFor('no-protocol', { healthChecks: [check('up', '/health'), check('down', '/nowhere')] })
    expect(await probe(runtime, deployment, manifest)).toMatchObject({
      isHealthy: true,
      checks: [{ status: 'Healthy' }, { status: 'Unhealthy' }],
    })
  })

  test.for(['never-answers', 'answers-much', 'breaks-off'])('of %s ends in time', async (name) => {
    const { runtime, deployment } = await raw(name)
    const manifest = manifestFor(name, { healthChecks: [check('deep')] })
    expect(await probe(runtime, deployment, manifest, { timeoutMs: 500 })).toMatchObject({
      answers: false,
      isHealthy: false,
      checks: [{ status: 'Unhealthy', description: expect.stringMatching(/./) }],
    })
  })
})

describe('a job', () => {
  test('is run, and what it publishes is passed on', async () => {
    const { runtime, deployment } = await running('calm')
    expect(await runJob(runtime, deployment, 'count', 5000)).toEqual({
      outcome: 'Completed',
      published: [{ type: 'module.calm.counted', data: { to: 1 } }],
    })
  })

  test('that the module does not know has Failed', async () => {
    const { runtime, deployment } = await running('calm')
    expect(await runJob(runtime, deployment, '../describe', 5000)).toMatchObject({
      outcome: 'Failed',
      message: expect.stringContaining('There is no job'),
    })
  })

  test('that still runs is skipped; one that takes too long has Failed', async () => {
    const { runtime, deployment } = await running('slow-job')
    expect(await runJob(runtime, deployment, 'forever', 200)).toMatchObject({
      outcome: 'Failed',
      message: 'The job forever took longer than 200 ms.',
    })
    expect(await runJob(runtime, deployment, 'forever', 200)).toEqual({ outcome: 'Skipped', published: [] })
  })

  test.for([...slow, 'answers-garbage', 'answers-wrong-json', 'answers-much', 'no-protocol'])(
    'of %s has Failed, in words',
    async (name) => {
      const { runtime, deployment } = await raw(name)
      expect(await runJob(runtime, deployment, 'beat', 200)).toMatchObject({
        outcome: 'Failed',
        message: expect.stringMatching(/./),
      })
    },
  )
})

describe('events', () => {
  test('are handed over, and what handlers publish is passed on', async () => {
    const { runtime, deployment } = await running('publishes')
    expect(await deliverEvents(runtime, deployment, [event('evt_1'), event('evt_2')])).toEqual({
      handled: ['evt_1', 'evt_2'],
      failed: [],
      published: [1, 2].map(() => ({ type: 'module.publishes.noticed', subject: 'clus_1', data: {} })),
    })
  })

  test.for([...slow, 'answers-garbage', 'answers-wrong-json', 'answers-much', 'breaks-off'])(
    'that %s is handed have all failed, in words',
    async (name) => {
      const { runtime, deployment } = await raw(name)
      const delivery = await deliverEvents(runtime, deployment, [event('evt_1')], 200)
      expect(delivery).toMatchObject({ handled: [], failed: [{ id: 'evt_1' }], problem: expect.stringMatching(/./) })
    },
  )

  test('are handled or not, whatever else a module says of them', async () => {
    const { runtime, deployment } = await raw('answers-other-events')
    expect(await deliverEvents(runtime, deployment, [event('evt_1'), event('evt_2')])).toEqual({
      handled: ['evt_1'],
      failed: [{ id: 'evt_2', message: 'It does not say why.' }],
      published: [],
    })
  })
})

describe('unloading', () => {
  test('stops a module, disposes of it and removes it', async () => {
    const { runtime, deployment } = await running('publishes')
    const { problems, published } = await shutDown(runtime, deployment)
    expect(problems).toEqual([])
    expect(published.map(({ type }) => type)).toEqual(['module.publishes.stopped', 'module.publishes.disposed'])
    expect(await runtime.list()).toEqual([])
  })

  test.for([
    ['hooks throws stop', ['stop: This module throws.']],
    ['hooks throws dispose', ['dispose: This module throws.']],
    ['hooks hangs stop', ['stop: stop took longer than 3000 ms.']],
  ] as const)('%s: it is disposed of and removed in any case', async ([command, expected]) => {
    const { runtime, deployment } = await running(command, command.replace('hooks ', '').replace(' ', '-in-'))
    let text = ''
    const remove = runtime.remove.bind(runtime)
    runtime.remove = async (removed, graceMs) => {
      // What it wrote comes by another way than its answer.
      await expect.poll(() => (text = runtime.output(removed))).toMatch(/^dispose$/m)
      return remove(removed, graceMs)
    }
    // What shall answer has time, on a busy machine as well.
    expect((await shutDown(runtime, deployment, { graceMs: 3000 })).problems).toEqual(expected)
    expect(text).toMatch(/^dispose$/m)
    expect(await runtime.list()).toEqual([])
  })

  test.for(['hooks exits stop', 'hooks exits dispose', 'ends-soon'])(
    '%s: one that ends by itself is removed',
    async (command) => {
      const { runtime, deployment } = await running(command, command.replace('hooks ', '').replace(' ', '-in-'))
      if (command === 'ends-soon') await runtime.ended(deployment)
      expect((await shutDown(runtime, deployment, { graceMs: 300 })).problems.length).toBeGreaterThan(0)
      expect(await runtime.list()).toEqual([])
    },
  )

  // One that spins gets its quarter of a minute to be disposed of.
  test.for(['ignores-sigterm', 'no-protocol', ...(isLong ? ['hooks spins stop'] : [])])(
    '%s: one that does not end is killed',
    async (command) => {
      const { runtime, deployment } = await running(command, command.replace('hooks ', '').replace(' ', '-in-'))
      await shutDown(runtime, deployment, { graceMs: 300 })
      expect(await runtime.list()).toEqual([])
    },
  )

  test('throws where the runtime cannot remove it, so that it is tried again', async () => {
    const { runtime, deployment } = await running('calm')
    const remove = runtime.remove.bind(runtime)
    runtime.remove = () => Promise.reject(new Error('The host is away.'))
    await expect(shutDown(runtime, deployment)).rejects.toThrow('The host is away.')
    runtime.remove = remove
    // The module has gone through its hooks already: the repeat finds it Disposed, and ends it.
    expect((await shutDown(runtime, deployment)).problems).toEqual([])
    expect(await runtime.list()).toEqual([])
  })
})
