import { type NavSlot } from '@platform/contract/manifest'
import { slotWarning } from '@platform/contract/module'
import { type Description } from '@platform/modules/protocol'
import { warningsOf } from '@platform/worker/modules/lifecycle/description'
import { runLifecycle, type LoadPhase } from '@platform/worker/modules/lifecycle/run'
import { describe, expect, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { type Hook, misbehavingId, type Way } from '../../support/modules/misbehaving.ts'
import { fixture } from '../../support/author.ts'
import { moduleProcesses, type ModuleProcesses } from '../../support/module-process.ts'
import { manifestFor } from '../../support/module-manifest.ts'

type Spec = Parameters<typeof manifestFor>[1]

/** Deploys a module of test/support/modules; returns it with its manifest. */
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
  })
  return { deployment, manifest: manifestFor(moduleId, spec) }
}

function idOf(command: string): string {
  const [name = '', how, hook] = command.split(' ')
  return how === undefined ? name : misbehavingId(how as Way, hook as Hook)
}

const short = { hookMs: 1000, probeMs: 300 }
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
    await runLifecycle(runtime, candidates, { ...short, onPhase })
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
    await expect(runLifecycle(runtime, candidates, { ...short, onPhase })).rejects.toThrow('lease is lost')
    const slow = candidates[1]?.deployment
    expect(slow && runtime.lines(slow).map(({ message }) => message)).toContain('configured')
  })
})

/** Rows that repeat a failure in another hook, or wait for a time limit. */
const isRepeated = (command: string) => /throws (?!configure$)|exits configure|hangs start|never-answers/.test(command)

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
    ['answers-garbage', 'PLAT-MOD-5004', /with an invalid response/],
    ['answers-wrong-json', 'PLAT-MOD-5004', /with an invalid response/],
    ['answers-deep', 'PLAT-MOD-5004', /with an invalid response/],
    ['answers-much', 'PLAT-MOD-5004', /more than 262144 bytes/],
    ['breaks-off', 'PLAT-MOD-5004', /./],
    ['no-protocol', 'PLAT-MOD-5004', /control protocol.*serve\(…\) of @platform\/modules/],
    ['unhealthy', 'PLAT-MOD-5006', /GET \/health did not respond with 2xx/],
    ['other-id', 'PLAT-MOD-5001', /^The code says quite-another, the manifest other-id\.$/],
  ]

  test('without effect on others', async () => {
    const runtime = moduleProcesses()
    const commands = failures.map(([command]) => command).filter((command) => isLong || !isRepeated(command))
    const candidates = await Promise.all([...commands, 'calm'].map((name) => candidate(runtime, name)))
    const results = await runLifecycle(runtime, candidates, short)
    for (const [index, [command, code, message]] of failures.filter(([name]) => commands.includes(name)).entries()) {
      const error = { code, message: expect.stringMatching(message) }
      expect(results[index], command).toMatchObject({ moduleId: idOf(command), outcome: 'Failed', error })
      expect(results[index]?.error?.message.length).toBeLessThanOrEqual(1000)
    }
    expect(results.at(-1)).toMatchObject({ moduleId: 'calm', outcome: 'Running' })
    const [wrongJson, otherId] = ['answers-wrong-json', 'other-id'].map((name) => commands.indexOf(name))
    const published = [{ type: 'module.answers-wrong-json.done', data: { isFine: true } }]
    expect(results[wrongJson!]?.published).toEqual(published)
    expect(runtime.output(candidates[otherId!]!.deployment)).not.toMatch(/^configure$/m)
  })

  test('if its process was killed or it was stopped before', async () => {
    const runtime = moduleProcesses()
    const [killed, stopped] = [await candidate(runtime, 'publishes'), await candidate(runtime, 'calm')]
    await runtime.end(killed.deployment, 'SIGKILL')
    await runLifecycle(runtime, [stopped], short)
    const stop = { method: 'POST', path: '/_platform/v1/stop' }
    await runtime.request(stopped.deployment, stop, { timeoutMs: 5000, maxBytes: 1000 })
    expect(await runLifecycle(runtime, [killed, stopped], short)).toMatchObject([
      { outcome: 'Failed', error: { code: 'PLAT-MOD-5004' } },
      { outcome: 'Failed', error: { code: 'PLAT-MOD-5004', message: expect.stringContaining('Stopped') } },
    ])
  })
})

describe('warnings', () => {
  const one: NavSlot = { slotId: 'nav.primary', id: 'one', label: 'One', icon: 'hand', route: '/modules/m', order: 100 }
  const two: NavSlot = { ...one, slotId: 'nav.settings', id: 'two', icon: 'cog', route: '/modules/m/two' }
  const { order, route, ...others } = one
  const reordered: NavSlot = { order, route, ...others }
  const description: Description = {
    sdkVersion: '0.3.0',
    id: 'm',
    version: '1.0.0',
    state: 'Loading',
    slots: [{ ...one }, { ...two }],
    healthChecks: [],
    jobs: [],
    subscriptions: [],
  }

  test.for([
    ['the same slots', [one, two], []],
    ['another order of slots', [two, one], []],
    ['another order of members', [reordered, two], []],
    ['a missing slot', [one], [slotWarning]],
    ['an additional slot', [one, two, { ...one, id: 'three' }], [slotWarning]],
    ['a duplicate slot', [one, two, two], [slotWarning]],
    ['another id', [{ ...one, id: 'uno' }, two], [slotWarning]],
    ['another label', [{ ...one, label: 'Uno' }, two], [slotWarning]],
    ['another icon', [{ ...one, icon: 'cog' }, two], [slotWarning]],
    ['another route', [{ ...one, route: '/modules/m/x' }, two], [slotWarning]],
    ['another position', [{ ...one, order: 101 }, two], [slotWarning]],
    ['another slot id', [{ ...one, slotId: 'nav.settings' }, two], [slotWarning]],
  ] as [string, NavSlot[], string[]][])('for a manifest with %s', ([, slots, expected]) => {
    expect(warningsOf(description, manifestFor('m', { navSlots: slots }))).toEqual(expected)
  })

  test('for an unknown member of a slot', () => {
    const slots = [{ ...one, hidden: true }, { ...two }]
    expect(warningsOf({ ...description, slots }, manifestFor('m', { navSlots: [one, two] }))).toEqual([slotWarning])
  })

  test('for another version and a missing job, at most 20', () => {
    const job = (id: string) => ({ id, description: 'Works.', intervalSeconds: 60 })
    const manifest = manifestFor('m', { navSlots: [one, two], backgroundJobs: [job('beat'), job('rest')] })
    expect(warningsOf({ ...description, version: '1.0.1', jobs: [job('rest')] }, manifest)).toEqual([
      expect.stringContaining('version'),
      expect.stringContaining('job beat'),
    ])
    const backgroundJobs = Array.from({ length: 20 }, (_, index) => job(`job-${index}`))
    expect(warningsOf({ ...description, version: '1.0.1' }, manifestFor('m', { backgroundJobs }))).toHaveLength(20)
  })
})
