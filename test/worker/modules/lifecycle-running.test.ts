import { publishedLimits } from '@platform/modules/protocol'
import { deliverEvents } from '@platform/worker/modules/lifecycle/events'
import { runJob } from '@platform/worker/modules/lifecycle/jobs'
import { ownEvents, publishedIn } from '@platform/worker/modules/lifecycle/published'
import { runLifecycle } from '@platform/worker/modules/lifecycle/run'
import { probe } from '@platform/worker/modules/lifecycle/probe'
import { shutDown } from '@platform/worker/modules/lifecycle/shut-down'
import { describe, expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { fixture } from '../../support/author.ts'
import { cloudEvent, moduleProcesses } from '../../support/module-process.ts'
import { manifestFor } from '../../support/module-manifest.ts'

/** Deploys a module of test/support/modules, and runs its hooks unless it does not implement the protocol. */
async function running(command: string, { isLoaded = true } = {}) {
  const runtime = moduleProcesses()
  const moduleId = command.replace('hooks ', '').replace(' ', '-in-')
  const spec = { id: 'd', moduleId, version: '1.0.0', repository: fixture(command), digest: 'sha256:0' }
  const deployment = await runtime.deploy({ ...spec, organisationId: 'org_acme', startsItself: false })
  const limits = { hookMs: 1000, probeMs: 0 }
  if (isLoaded) await runLifecycle(runtime, [{ deployment, manifest: manifestFor(moduleId) }], limits)
  return { runtime, deployment }
}

const check = (name: string, path = `/health/${name}`) => ({ name, path, tags: ['critical' as const] })

describe('a probe', () => {
  test('calls the health endpoint and every check of the manifest', async () => {
    const { runtime, deployment } = await running('calm')
    const manifest = manifestFor('calm', { healthChecks: [check('calmness'), check('missing')] })
    expect(await probe(runtime, deployment, manifest)).toEqual({
      isResponding: true,
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
        expect.objectContaining({ name: 'missing', status: 'Unhealthy', description: 'It returned 404.' }),
      ],
      published: [],
    })
  })

  test('distinguishes an unhealthy module from one that does not respond', async () => {
    const { runtime, deployment } = await running('unhealthy')
    const manifest = manifestFor('unhealthy', { healthChecks: [check('database')] })
    expect(await probe(runtime, deployment, manifest)).toMatchObject({
      isResponding: true,
      isHealthy: false,
      checks: [{ status: 'Unhealthy', description: 'No database.' }],
    })
    await runtime.end(deployment, 'SIGKILL')
    expect(await probe(runtime, deployment, manifest)).toMatchObject({
      isResponding: false,
      isHealthy: false,
      checks: [{ status: 'Unhealthy', description: 'It does not run.' }],
    })
  })
})

describe('a job', () => {
  test('completes, and its published events are returned', async () => {
    const { runtime, deployment } = await running('calm')
    expect(await runJob(runtime, deployment, 'count', 5000)).toEqual({
      outcome: 'Completed',
      published: [{ type: 'module.calm.counted', data: { to: 1 } }],
    })
    const unknown = { outcome: 'Failed', message: expect.stringContaining('There is no job') }
    expect(await runJob(runtime, deployment, '../describe', 5000)).toMatchObject(unknown)
  })

  test('fails after its time limit, and is skipped while it runs', async () => {
    const { runtime, deployment } = await running('slow-job')
    const message = 'The job forever took longer than 200 ms.'
    expect(await runJob(runtime, deployment, 'forever', 200)).toMatchObject({ outcome: 'Failed', message })
    expect(await runJob(runtime, deployment, 'forever', 200)).toEqual({ outcome: 'Skipped', published: [] })
  })
})

test('delivers events, and returns what handlers publish', async () => {
  const { runtime, deployment } = await running('publishes')
  expect(await deliverEvents(runtime, deployment, [cloudEvent('evt_1'), cloudEvent('evt_2')])).toEqual({
    handled: ['evt_1', 'evt_2'],
    failed: [],
    published: [1, 2].map(() => ({ type: 'module.publishes.noticed', subject: 'clus_1', data: {} })),
  })
})

const invalid = ['answers-garbage', 'answers-wrong-json', 'answers-much', 'breaks-off', 'no-protocol']

test.for([...invalid, ...(isLong ? ['never-answers'] : [])])(
  'reports a failure of each call to a module that is %s',
  async (name) => {
    const { runtime, deployment } = await running(name, { isLoaded: false })
    const failure = expect.stringMatching(/./)
    const manifest = manifestFor(name, { healthChecks: [check('up', '/health'), check('down', '/nowhere')] })
    const [up, down] = (await probe(runtime, deployment, manifest, { timeoutMs: 500 })).checks
    // Without further information, the status of the response is the result.
    expect([up?.status, down?.status]).toEqual(
      name === 'no-protocol'
        ? ['Healthy', 'Unhealthy']
        : /garbage|wrong-json/.test(name)
          ? ['Healthy', 'Healthy']
          : ['Unhealthy', 'Unhealthy'],
    )
    const job = await runJob(runtime, deployment, 'beat', 200)
    expect(job).toMatchObject({ outcome: 'Failed', message: failure })
    const delivery = await deliverEvents(runtime, deployment, [cloudEvent('evt_1')], 200)
    expect(delivery).toMatchObject({ handled: [], failed: [{ id: 'evt_1' }], problem: failure })
  },
)

test('counts only delivered events as handled', async () => {
  const { runtime, deployment } = await running('answers-other-events', { isLoaded: false })
  expect(await deliverEvents(runtime, deployment, [cloudEvent('evt_1'), cloudEvent('evt_2')])).toEqual({
    handled: ['evt_1'],
    failed: [{ id: 'evt_2', message: 'No reason reported.' }],
    published: [],
  })
})

describe('a shutdown', () => {
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
    ...(isLong ? [['hooks hangs stop', ['stop: stop took longer than 3000 ms.']] as const] : []),
  ] as const)('disposes of and removes a module that %s', async ([command, expected]) => {
    const { runtime, deployment } = await running(command)
    let output = ''
    const remove = runtime.remove.bind(runtime)
    runtime.remove = async (removed, graceMs) => {
      // Output arrives independently of the response.
      await expect.poll(() => (output = runtime.output(removed))).toMatch(/^dispose$/m)
      return remove(removed, graceMs)
    }
    expect((await shutDown(runtime, deployment, { graceMs: 3000 })).problems).toEqual(expected)
    expect(output).toMatch(/^dispose$/m)
    expect(await runtime.list()).toEqual([])
  })

  test.for(['hooks exits stop', 'hooks exits dispose', 'ends-soon'])(
    'removes a module that exits: %s',
    async (command) => {
      const { runtime, deployment } = await running(command)
      if (command === 'ends-soon') await runtime.ended(deployment)
      expect((await shutDown(runtime, deployment, { graceMs: 300 })).problems.length).toBeGreaterThan(0)
      expect(await runtime.list()).toEqual([])
    },
  )

  // A spinning module is killed after 15 seconds.
  test.for(['ignores-sigterm', ...(isLong ? ['hooks spins stop'] : [])])(
    'kills a module that does not exit: %s',
    async (command) => {
      const { runtime, deployment } = await running(command)
      await shutDown(runtime, deployment, { graceMs: 300 })
      expect(await runtime.list()).toEqual([])
    },
  )

  test('throws if the runtime cannot remove the module, and can be repeated', async () => {
    const { runtime, deployment } = await running('calm')
    const remove = runtime.remove.bind(runtime)
    runtime.remove = () => Promise.reject(new Error('The host is unavailable.'))
    await expect(shutDown(runtime, deployment)).rejects.toThrow('The host is unavailable.')
    runtime.remove = remove
    expect((await shutDown(runtime, deployment)).problems).toEqual([])
    expect(await runtime.list()).toEqual([])
  })
})

describe('published events', () => {
  const header = (value: unknown) => ({
    'x-platform-published': Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString(
      'base64url',
    ),
  })
  const event = { type: 'module.hello.greeted', subject: 'ada', data: { count: 1 } }
  const nested = (levels: number): Record<string, unknown> => (levels === 0 ? {} : { deeper: nested(levels - 1) })

  test('have the module as their subject by default', () => {
    const data = { a: [1] }
    expect(
      ownEvents('hello', [
        { type: event.type, data: {} },
        { type: 'module.hello.a.b_c', subject: 'x', data },
      ]),
    ).toEqual([
      { name: event.type, subject: 'hello', data: {} },
      { name: 'module.hello.a.b_c', subject: 'x', data },
    ])
  })

  test.each([
    ['of another module', { type: 'module.hello-world.done' }],
    ['of the platform', { type: 'platform.module.installed' }],
    ['of the platform about modules', { type: 'module.installed' }],
    ['without a name', { type: 'module.hello.' }],
    ['with a long name', { type: `module.hello.${'x'.repeat(200)}` }],
    ['with a long subject', { subject: 'x'.repeat(201) }],
    ['with too much data', { data: { text: 'x'.repeat(8192) } }],
    ['with deeply nested data', { data: nested(17) }],
  ])('are dropped %s', (_, change) => {
    expect(ownEvents('hello', [{ ...event, ...change }])).toEqual([])
  })

  test('are limited to those that an SDK sends, in order', () => {
    const events = Array.from({ length: 30 }, (_, index) => ({ ...event, data: { index } }))
    const kept = events.slice(0, publishedLimits.events)
    expect(ownEvents('hello', events).map(({ data }) => data)).toEqual(kept.map(({ data }) => data))
    expect(publishedIn('hello', header(events))).toEqual(kept)
    expect(publishedIn('hello', {})).toEqual([])
  })

  test.for(['platform.cluster.deleted', 'module.other.greeted', 'module.hello2.greeted'])(
    'of type %s are dropped, and the others kept',
    (type) => {
      expect(publishedIn('hello', header([{ ...event, type }, event]))).toEqual([event])
    },
  )

  test.for([
    ['is not JSON', '['],
    ['is not a list', event],
    ['contains a number', [event, 1]],
    ['contains an event without data', [{ type: event.type }]],
    ['contains an event with a list as data', [{ ...event, data: [1] }]],
    ['contains a long type', [{ ...event, type: `module.hello.${'x'.repeat(200)}` }]],
    ['is larger than any SDK sends', [{ ...event, data: { text: 'x'.repeat(publishedLimits.headerBytes) } }]],
  ] as [string, unknown][])('are ignored if the header %s', ([, value]) => {
    expect(publishedIn('hello', header(value))).toEqual([])
  })
})
