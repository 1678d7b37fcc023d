import type { NavSlot } from '@platform/contract/manifest'
import { slotWarning } from '@platform/contract/module'
import { type Description, publishedLimits } from '@platform/modules/protocol'
import { warningsOf } from '@platform/worker/modules/lifecycle/description'
import { runLifecycle, type LoadPhase } from '@platform/worker/modules/lifecycle/run'
import { config } from '@platform/core/config'
import { describe, expect, onTestFinished, test } from 'vitest'
import { captureLog } from '../../support/log.ts'
import { isLong } from '../../support/long.ts'
import { type Failure, type Hook, misbehavingId } from '../../support/modules/misbehaving.ts'
import { fixture } from '../../support/author.ts'
import { moduleProcesses, type ModuleProcesses, cloudEvent } from '../../support/module-process.ts'
import { manifestFor } from '../../support/module-manifest.ts'
import { deliverEvents } from '@platform/worker/modules/lifecycle/events'
import { runJob } from '@platform/worker/modules/lifecycle/events'
import { ownEvents, publishedIn } from '@platform/worker/modules/lifecycle/published'
import { probe } from '@platform/worker/modules/lifecycle/probe'
import { shutDown } from '@platform/worker/modules/lifecycle/shut-down'

type Spec = Parameters<typeof manifestFor>[1]

async function candidate(runtime: ModuleProcesses, command: string, spec: Spec = {}, startsItself = false) {
  const moduleId = idOf(command)
  const deployment = await runtime.deploy({
    id: command.replaceAll(' ', '-'),
    moduleId,
    version: '1.0.0',
    repository: fixture(command),
    digest: 'sha256:0',
    organisationId: 'org_acme',
    startsItself,
    mayRunAsProcess: false,
  })
  return { deployment, manifest: manifestFor(moduleId, spec) }
}

function idOf(command: string): string {
  const [name = '', behaviour, hook] = command.split(' ')
  return behaviour === undefined ? name : misbehavingId(behaviour as Failure, hook as Hook)
}

const shortLimits = { hookMs: 1000, probeTimeoutMs: 300 }
const navSlots: NavSlot[] = [
  { slotId: 'nav.primary', id: 'calm', label: 'Calm', icon: 'sailboat', route: '/modules/calm', order: 200 },
]
const allHooks = ['configureServices', 'configure', 'start']

describe('loading', () => {
  test.each([false, true])('runs the hooks once, also when repeated (startsItself: %s)', async (startsItself) => {
    const runtime = moduleProcesses()
    const calm = await candidate(runtime, 'calm', { navSlots }, startsItself)
    const result = await runLifecycle(runtime, [calm])
    expect(result).toEqual([
      { moduleId: 'calm', outcome: 'Running', warnings: [], subscriptions: ['platform.job.completed'], published: [] },
    ])
    expect(await runLifecycle(runtime, [calm])).toEqual(result)
    expect(runtime.hooks(calm.deployment)).toEqual(allHooks)
  })

  test('starts no module before configure has ended for all', async () => {
    const runtime = moduleProcesses()
    const commands = ['slow-configure', 'calm', 'hooks throws configure']
    const candidates = await Promise.all(commands.map((command) => candidate(runtime, command)))
    const order: string[] = []
    const onPhase = (moduleId: string, phase: LoadPhase) => void order.push(`${phase} ${moduleId}`)
    await runLifecycle(runtime, candidates, { ...shortLimits, onPhase })
    const timesOf = (pattern: RegExp) =>
      candidates
        .flatMap(({ deployment }) => runtime.lines(deployment))
        .filter(({ message }) => pattern.test(message))
        .map(({ time }): string => time)
        .toSorted()
    const [configured, started] = [timesOf(/is Configured|configure failed/), timesOf(/is Started|start failed/)]
    expect([configured.length, started.length]).toEqual([3, 2])
    expect(String(configured.at(-1)) <= String(started[0])).toBe(true)
    expect(order.slice(0, 3).every((phase) => phase.startsWith('configure '))).toBe(true)
    expect(order.slice(3).toSorted()).toEqual(['probe calm', 'start calm', 'start slow-configure'])
  })

  test('waits until a module is healthy', async () => {
    const runtime = moduleProcesses()
    const results = await runLifecycle(runtime, [await candidate(runtime, 'healthy-later')])
    expect(results).toMatchObject([{ outcome: 'Running' }])
  })

  test('returns events that hooks publish', async () => {
    const runtime = moduleProcesses()
    const [result] = await runLifecycle(runtime, [await candidate(runtime, 'publishes')])
    expect(result?.published).toEqual([
      { type: 'module.publishes.configured', data: {} },
      { type: 'module.publishes.started', subject: 'me', data: { at: 'once' } },
    ])
  })

  test('rethrows an error of its callback after all calls have ended', async () => {
    const runtime = moduleProcesses()
    const candidates = await Promise.all(['calm', 'slow-configure'].map((command) => candidate(runtime, command)))
    const onPhase = (moduleId: string): void => {
      if (moduleId === 'calm') throw new Error('The lease is lost.')
    }
    await expect(runLifecycle(runtime, candidates, { ...shortLimits, onPhase })).rejects.toThrow('lease is lost')
    const slowDeployment = candidates[1]?.deployment
    expect(slowDeployment && runtime.lines(slowDeployment).map(({ message }) => message)).toContain('configured')
  })
})

/** Whether a row repeats a failure in another hook, or waits for a time limit. Short runs skip such rows. */
const isRepeated = (command: string) =>
  /throws (?!configure$)|exits configure|hangs start|spins|never-answers|answers-(?!garbage)/.test(command)

describe('a module fails', () => {
  const failures: [command: string, code: string, message: RegExp][] = [
    ['hooks throws configure', 'PLAT-MOD-5004', /^This module throws\.$/],
    ['hooks throws configureServices', 'PLAT-MOD-5004', /^This module throws\.$/],
    ['hooks throws start', 'PLAT-MOD-5005', /^This module throws\.$/],
    ['hooks exits configure', 'PLAT-MOD-5004', /./],
    ['hooks exits start', 'PLAT-MOD-5005', /./],
    ['hooks hangs configure', 'PLAT-MOD-5004', /^configure took longer than 1000 ms\.$/],
    ['hooks hangs start', 'PLAT-MOD-5005', /^start took longer than 1000 ms\.$/],
    ['hooks spins configure', 'PLAT-MOD-5004', /No complete response within 2000 ms/],
    ['never-answers', 'PLAT-MOD-5004', /No complete response within 2000 ms/],
    ['answers-garbage', 'PLAT-MOD-5004', /It returned an invalid response to/],
    ['answers-wrong-json', 'PLAT-MOD-5004', /It returned an invalid response to/],
    ['answers-deep', 'PLAT-MOD-5004', /It returned an invalid response to/],
    ['answers-much', 'PLAT-MOD-5004', /more than 262144 bytes/],
    ['breaks-off', 'PLAT-MOD-5004', /./],
    ['no-protocol', 'PLAT-MOD-5004', /control protocol.*serve\(…\) of @platform\/modules/],
    ['unhealthy', 'PLAT-MOD-5006', /GET \/health did not respond with 2xx/],
    ['other-id', 'PLAT-MOD-5001', /^The code has the id quite-another, but the manifest has other-id\.$/],
  ]

  test('without effect on others', async () => {
    const runtime = moduleProcesses()
    const commands = failures.map(([command]) => command).filter((command) => isLong || !isRepeated(command))
    const candidates = await Promise.all([...commands, 'calm'].map((name) => candidate(runtime, name)))
    const results = await runLifecycle(runtime, candidates, shortLimits)
    for (const [index, [command, code, message]] of failures.filter(([name]) => commands.includes(name)).entries()) {
      const error = { code, message: expect.stringMatching(message) }
      expect(results[index], command).toMatchObject({ moduleId: idOf(command), outcome: 'Failed', error })
      expect(results[index]?.error?.message.length).toBeLessThanOrEqual(1000)
    }
    expect(results.at(-1)).toMatchObject({ moduleId: 'calm', outcome: 'Running' })
    const otherId = candidates[commands.indexOf('other-id')]!.deployment
    expect(runtime.output(otherId)).not.toMatch(/^configure$/m)
  })

  test('if its process was killed or it was stopped before', async () => {
    const runtime = moduleProcesses()
    const [killed, stopped] = [await candidate(runtime, 'publishes'), await candidate(runtime, 'calm')]
    await runtime.end(killed.deployment, 'SIGKILL')
    await runLifecycle(runtime, [stopped], shortLimits)
    const stop = { method: 'POST', path: '/_platform/v1/stop' }
    await runtime.request(stopped.deployment, stop, { timeoutMs: 5000, maxBytes: 1000 })
    expect(await runLifecycle(runtime, [killed, stopped], shortLimits)).toMatchObject([
      { outcome: 'Failed', error: { code: 'PLAT-MOD-5004' } },
      { outcome: 'Failed', error: { code: 'PLAT-MOD-5004', message: expect.stringContaining('Stopped') } },
    ])
  })
})

describe('warnings', () => {
  test.for([
    [[], true],
    [[{ ...navSlots[0]!, id: 'other' }], true],
    [navSlots, false],
  ] as [NavSlot[], boolean][])(
    'about slots that differ from the manifest are logged: %j',
    async ([declared, isLogged]) => {
      const runtime = moduleProcesses()
      const calm = await candidate(runtime, 'calm', { navSlots: declared })
      const { PLAT_LOG_LEVEL } = config
      onTestFinished(() => void Object.assign(config, { PLAT_LOG_LEVEL }))
      Object.assign(config, { PLAT_LOG_LEVEL: 'warn' })
      const lines = await captureLog(() => runLifecycle(runtime, [calm]))
      const expected = {
        moduleId: 'calm',
        slots: ['nav.primary calm /modules/calm'],
        manifestSlots: declared.map(({ slotId, id, route }) => [slotId, id, route].join(' ')),
      }
      expect(lines.filter(({ message }) => message === slotWarning)).toMatchObject(isLogged ? [expected] : [])
    },
  )

  const nav: NavSlot = { slotId: 'nav.primary', id: 'one', label: 'One', icon: 'hand', route: '/modules/m', order: 100 }
  const cog: NavSlot = { ...nav, slotId: 'nav.settings', id: 'two', icon: 'cog', route: '/modules/m/two' }
  const { order, route, ...others } = nav
  const reorderedSlot: NavSlot = { order, route, ...others }
  const description: Description = {
    sdkVersion: '0.3.0',
    id: 'm',
    version: '1.0.0',
    state: 'Loading',
    slots: [{ ...nav }, { ...cog }],
    healthChecks: [],
    jobs: [],
    subscriptions: [],
  }

  test.for([
    ['the same slots', [nav, cog], []],
    ['another order of slots', [cog, nav], []],
    ['another order of members', [reorderedSlot, cog], []],
    ['a missing slot', [nav], [slotWarning]],
    ['an additional slot', [nav, cog, { ...nav, id: 'three' }], [slotWarning]],
    ['a duplicate slot', [nav, cog, cog], [slotWarning]],
    ['another label', [{ ...nav, label: 'Uno' }, cog], [slotWarning]],
    ['another position', [{ ...nav, order: 101 }, cog], [slotWarning]],
  ] as [string, NavSlot[], string[]][])('for a manifest with %s', ([, slots, expected]) => {
    expect(warningsOf(description, manifestFor('m', { navSlots: slots }))).toEqual(expected)
  })

  test('for an unknown member of a slot', () => {
    const slots = [{ ...nav, hidden: true }, { ...cog }]
    expect(warningsOf({ ...description, slots }, manifestFor('m', { navSlots: [nav, cog] }))).toEqual([slotWarning])
  })

  test('for another version and a missing job, at most 20', () => {
    const job = (id: string) => ({ id, description: 'Works.', intervalSeconds: 60 })
    const manifest = manifestFor('m', { navSlots: [nav, cog], backgroundJobs: [job('beat'), job('rest')] })
    expect(warningsOf({ ...description, version: '1.0.1', jobs: [job('rest')] }, manifest)).toEqual([
      expect.stringContaining('version'),
      expect.stringContaining('job beat'),
    ])
    const backgroundJobs = Array.from({ length: 20 }, (_, index) => job(`job-${index}`))
    expect(warningsOf({ ...description, version: '1.0.1' }, manifestFor('m', { backgroundJobs }))).toHaveLength(20)
  })
})

async function runModule(command: string, { isLoaded = true } = {}) {
  const runtime = moduleProcesses()
  const module = await candidate(runtime, command)
  if (isLoaded) await runLifecycle(runtime, [module], { hookMs: 1000, probeTimeoutMs: 0 })
  return { runtime, deployment: module.deployment }
}

const check = (name: string, path = `/health/${name}`) => ({ name, path, tags: ['critical' as const] })

describe('a probe', () => {
  test('calls the health endpoint and every check of the manifest', async () => {
    const { runtime, deployment } = await runModule('calm')
    const manifest = manifestFor('calm', { healthChecks: [check('calmness'), check('missing')] })
    const times = { durationMs: expect.any(Number), checkedAtMs: expect.any(Number) }
    expect(await probe(runtime, deployment, manifest)).toEqual({
      isResponding: true,
      isHealthy: true,
      checks: [
        { name: 'calmness', status: 'Healthy', tags: ['critical'], description: '', ...times },
        expect.objectContaining({ name: 'missing', status: 'Unhealthy', description: 'It returned 404.' }),
      ],
      published: [],
    })
  })

  test('distinguishes an unhealthy module from one that does not respond', async () => {
    const { runtime, deployment } = await runModule('unhealthy')
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
    const { runtime, deployment } = await runModule('calm')
    expect(await runJob(runtime, deployment, 'count', 5000)).toEqual({
      outcome: 'Completed',
      published: [{ type: 'module.calm.counted', data: { to: 1 } }],
    })
    const unknownJob = { outcome: 'Failed', message: expect.stringContaining('There is no job') }
    expect(await runJob(runtime, deployment, '../describe', 5000)).toMatchObject(unknownJob)
  })

  test('fails after its time limit, and is skipped while it runs', async () => {
    const { runtime, deployment } = await runModule('slow-job')
    const message = 'The job forever took longer than 200 ms.'
    expect(await runJob(runtime, deployment, 'forever', 200)).toMatchObject({ outcome: 'Failed', message })
    expect(await runJob(runtime, deployment, 'forever', 200)).toEqual({ outcome: 'Skipped', published: [] })
  })
})

test('delivers events, and returns what handlers publish', async () => {
  const { runtime, deployment } = await runModule('publishes')
  expect(await deliverEvents(runtime, deployment, [cloudEvent('evt_1'), cloudEvent('evt_2')])).toEqual({
    handled: ['evt_1', 'evt_2'],
    failed: [],
    published: [1, 2].map(() => ({ type: 'module.publishes.noticed', subject: 'clus_1', data: {} })),
  })
})

const invalidModules = [
  'answers-garbage',
  'no-protocol',
  'breaks-off',
  'answers-wrong-json',
  'answers-much',
  'never-answers',
]

test.for(invalidModules.slice(0, isLong ? undefined : 3))(
  'reports a failure of each call to a module that is %s',
  async (name) => {
    const { runtime, deployment } = await runModule(name, { isLoaded: false })
    const failure = expect.stringMatching(/./)
    const manifest = manifestFor(name, { healthChecks: [check('up', '/health'), check('down', '/nowhere')] })
    const [upCheck, downCheck] = (await probe(runtime, deployment, manifest, { timeoutMs: 500 })).checks
    // If the body is not a valid health result, the status of the response is the result.
    const isUp = /no-protocol|garbage|wrong-json/.test(name)
    const isDown = !/garbage|wrong-json/.test(name)
    expect([upCheck?.status, downCheck?.status]).toEqual([
      isUp ? 'Healthy' : 'Unhealthy',
      isDown ? 'Unhealthy' : 'Healthy',
    ])
    const job = await runJob(runtime, deployment, 'beat', 200)
    expect(job).toMatchObject({ outcome: 'Failed', message: failure })
    const delivery = await deliverEvents(runtime, deployment, [cloudEvent('evt_1')], 200)
    expect(delivery).toMatchObject({ handled: [], failed: [{ id: 'evt_1' }], problem: failure })
  },
)

test('counts only delivered events as handled', async () => {
  const { runtime, deployment } = await runModule('answers-other-events', { isLoaded: false })
  expect(await deliverEvents(runtime, deployment, [cloudEvent('evt_1'), cloudEvent('evt_2')])).toEqual({
    handled: ['evt_1'],
    failed: [{ id: 'evt_2', message: 'No reason reported.' }],
    published: [],
  })
})

describe('a shutdown', () => {
  test('stops a module, disposes of it and removes it', async () => {
    const { runtime, deployment } = await runModule('publishes')
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
    const { runtime, deployment } = await runModule(command)
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

  test.for(['hooks exits stop', 'ends-soon'])('removes a module that exits: %s', async (command) => {
    const { runtime, deployment } = await runModule(command)
    if (command === 'ends-soon') await runtime.ended(deployment)
    expect((await shutDown(runtime, deployment, { graceMs: 300 })).problems.length).toBeGreaterThan(0)
    expect(await runtime.list()).toEqual([])
  })

  // A spinning module is killed after 15 seconds.
  test.for(['ignores-sigterm', ...(isLong ? ['hooks spins stop'] : [])])(
    'kills a module that does not exit: %s',
    async (command) => {
      const { runtime, deployment } = await runModule(command)
      await shutDown(runtime, deployment, { graceMs: 300 })
      expect(await runtime.list()).toEqual([])
    },
  )

  test('throws if the runtime cannot remove the module, and can be repeated', async () => {
    const { runtime, deployment } = await runModule('calm')
    const remove = runtime.remove.bind(runtime)
    runtime.remove = () => Promise.reject(new Error('The host is unavailable.'))
    await expect(shutDown(runtime, deployment)).rejects.toThrow('The host is unavailable.')
    runtime.remove = remove
    expect((await shutDown(runtime, deployment)).problems).toEqual([])
    expect(await runtime.list()).toEqual([])
  })
})

describe('published events', () => {
  const header = (value: unknown) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return { 'x-platform-published': Buffer.from(text).toString('base64url') }
  }
  const event = { type: 'module.hello.greeted', subject: 'ada', data: { count: 1 } }
  const nestedData = (levels: number): Record<string, unknown> =>
    levels === 0 ? {} : { deeper: nestedData(levels - 1) }

  test('have the module as their subject by default', () => {
    const { type, ...others } = event
    const publishedEvents = [{ type, data: {} }, event]
    expect(ownEvents('hello', publishedEvents)).toEqual([
      { name: type, subject: 'hello', data: {} },
      { name: type, ...others },
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
    ['with deeply nested data', { data: nestedData(17) }],
  ])('are dropped %s', (_, change) => {
    expect(ownEvents('hello', [{ ...event, ...change }])).toEqual([])
  })

  test('are limited to those that an SDK sends, in order', () => {
    const events = Array.from({ length: 30 }, (_, index) => ({ ...event, data: { index } }))
    const keptEvents = events.slice(0, publishedLimits.events)
    expect(ownEvents('hello', events).map(({ data }) => data)).toEqual(keptEvents.map(({ data }) => data))
    expect(publishedIn('hello', header(events))).toEqual(keptEvents)
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
