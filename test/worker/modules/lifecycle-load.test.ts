import { slotWarning } from '@platform/contract/module'
import { runLifecycle, type LoadPhase } from '@platform/worker/modules/lifecycle/run'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isLong } from '../../support/long.ts'
import { type Hook, misbehavingId, type Way } from '../../support/modules/misbehaving.ts'
import { fixture, ModuleProcesses } from '../../support/module-process.ts'
import { manifestFor } from '../../support/module-manifest.ts'

type Spec = Parameters<typeof manifestFor>[1]

function processes(): ModuleProcesses {
  const runtime = new ModuleProcesses()
  onTestFinished(() => runtime[Symbol.asyncDispose]())
  return runtime
}

/** A module's process, and the manifest that it is installed with. */
async function candidate(runtime: ModuleProcesses, command: string, spec: Spec = {}, moduleId = idOf(command)) {
  const deployment = await runtime.deploy({
    id: command.replaceAll(' ', '-'),
    moduleId,
    version: '1.0.0',
    repository: fixture(command),
    digest: 'sha256:0',
    organisationId: 'org_acme',
    startsItself: false,
  })
  return { deployment, manifest: manifestFor(moduleId, spec) }
}

function idOf(command: string): string {
  const [name = '', how, hook] = command.split(' ')
  return how === undefined ? name : misbehavingId(how as Way, hook as Hook)
}

function failsAtCalm(moduleId: string): void {
  if (moduleId === 'calm') throw new Error('The work was taken over.')
}

const short = { hookMs: 1000, probeMs: 300 }
const calmSlots = [
  { slotId: 'nav.primary', id: 'calm', label: 'Calm', icon: 'sailboat', route: '/modules/calm', order: 200 },
] as const

describe('loading', () => {
  test('leads a module through its hooks, and tells what it has subscribed to', async () => {
    const runtime = processes()
    const calm = await candidate(runtime, 'calm', { navSlots: [...calmSlots] })
    expect(await runLifecycle(runtime, [calm])).toEqual([
      { moduleId: 'calm', outcome: 'Running', warnings: [], subscriptions: ['platform.job.completed'], published: [] },
    ])
    expect(runtime.hooks(calm.deployment)).toEqual(['configureServices', 'configure', 'start'])
  })

  test('starts none before every configure has ended, well or badly', async () => {
    const runtime = processes()
    const commands = ['slow-configure', 'calm', 'hooks throws configure']
    const candidates = await Promise.all(commands.map((command) => candidate(runtime, command)))
    const order: string[] = []
    const onPhase = (moduleId: string, phase: LoadPhase) => void order.push(`${phase} ${moduleId}`)
    await runLifecycle(runtime, candidates, { ...short, onPhase })
    const timesOf = (wanted: RegExp) =>
      candidates
        .flatMap(({ deployment }) => runtime.lines(deployment))
        .filter(({ message }) => wanted.test(message))
        .map(({ time }): string => time)
        .toSorted()
    const [configured, started] = [timesOf(/is Configured|configure failed/), timesOf(/is Started|start failed/)]
    expect([configured.length, started.length]).toEqual([3, 2])
    expect(String(configured.at(-1)) <= String(started[0])).toBe(true)
    expect(order.slice(0, 3).every((phase) => phase.startsWith('configure '))).toBe(true)
    expect(order.slice(3).toSorted()).toEqual(['probe calm', 'start calm', 'start slow-configure'])
  })

  test('can be repeated: what has passed passes again and nothing is done twice', async () => {
    const runtime = processes()
    const calm = await candidate(runtime, 'calm', { navSlots: [...calmSlots] })
    expect(await runLifecycle(runtime, [calm])).toEqual(await runLifecycle(runtime, [calm]))
    expect(runtime.hooks(calm.deployment)).toEqual(['configureServices', 'configure', 'start'])
  })

  test('passes a module that starts itself', async () => {
    const runtime = processes()
    const assignment = { id: 'a', moduleId: 'calm', version: '1.0.0', repository: fixture('calm'), digest: '' }
    const deployment = await runtime.deploy({ ...assignment, organisationId: 'org_acme', startsItself: true })
    const manifest = manifestFor('calm', { navSlots: [...calmSlots] })
    expect(await runLifecycle(runtime, [{ deployment, manifest }])).toMatchObject([
      { outcome: 'Running', warnings: [] },
    ])
    expect(runtime.hooks(deployment)).toEqual(['configureServices', 'configure', 'start'])
  })

  test('waits a while for a module to become healthy', async () => {
    const runtime = processes()
    const loaded = await runLifecycle(runtime, [await candidate(runtime, 'healthy-later')])
    expect(loaded).toMatchObject([{ outcome: 'Running' }])
  })

  test('passes on what a module publishes on its way', async () => {
    const runtime = processes()
    const loaded = await runLifecycle(runtime, [await candidate(runtime, 'publishes')])
    expect(loaded[0]?.published).toEqual([
      { type: 'module.publishes.configured', data: {} },
      { type: 'module.publishes.started', subject: 'me', data: { at: 'once' } },
    ])
  })

  test('throws what its caller throws, once nothing is under way any more', async () => {
    const runtime = processes()
    const candidates = await Promise.all(['calm', 'slow-configure'].map((command) => candidate(runtime, command)))
    await expect(runLifecycle(runtime, candidates, { ...short, onPhase: failsAtCalm })).rejects.toThrow('taken over')
    const slow = candidates[1]?.deployment
    expect(slow && runtime.lines(slow).map(({ message }) => message)).toContain('configured')
  })
})

/** The same way in another hook, and what only takes longer. */
const isRepeated = (command: string) => /throws (?!configure$)|exits configure|hangs start|never-answers/.test(command)

describe('a module that fails', () => {
  const failures: [command: string, code: string, message: RegExp][] = [
    ['hooks throws configureServices', 'PLAT-MOD-5004', /^This module throws\.$/],
    ['hooks throws configure', 'PLAT-MOD-5004', /^This module throws\.$/],
    ['hooks throws start', 'PLAT-MOD-5005', /^This module throws\.$/],
    ['hooks exits configure', 'PLAT-MOD-5004', /./],
    ['hooks exits start', 'PLAT-MOD-5005', /./],
    ['hooks hangs configure', 'PLAT-MOD-5004', /^configure took longer than 1000 ms\.$/],
    ['hooks hangs start', 'PLAT-MOD-5005', /^start took longer than 1000 ms\.$/],
    ['hooks spins configure', 'PLAT-MOD-5004', /No answer within 2000 ms/],
    ['never-answers', 'PLAT-MOD-5004', /No answer within 2000 ms/],
    ['answers-garbage', 'PLAT-MOD-5004', /with what no SDK answers/],
    ['answers-wrong-json', 'PLAT-MOD-5004', /with what no SDK answers/],
    ['answers-deep', 'PLAT-MOD-5004', /with what no SDK answers/],
    ['answers-much', 'PLAT-MOD-5004', /larger than 262144 bytes/],
    ['breaks-off', 'PLAT-MOD-5004', /./],
    ['no-protocol', 'PLAT-MOD-5004', /control protocol.*serve\(…\) of @platform\/modules/],
    ['unhealthy', 'PLAT-MOD-5006', /GET \/health did not answer with 2xx/],
  ]

  test.for(failures.filter(([command]) => isLong || !isRepeated(command)))(
    '%s: %s, and its neighbour runs',
    async ([command, code, message]) => {
      const runtime = processes()
      const candidates = await Promise.all([command, 'calm'].map((name) => candidate(runtime, name)))
      const [failed, calm] = await runLifecycle(runtime, candidates, short)
      expect(failed).toMatchObject({
        moduleId: idOf(command),
        outcome: 'Failed',
        error: { code, message: expect.stringMatching(message) },
      })
      expect(failed?.error?.message.length).toBeLessThanOrEqual(1000)
      expect(calm).toMatchObject({ moduleId: 'calm', outcome: 'Running' })
    },
  )

  test('because its code has another id is not configured', async () => {
    const runtime = processes()
    const other = await candidate(runtime, 'other-id')
    expect(await runLifecycle(runtime, [other], short)).toMatchObject([
      {
        outcome: 'Failed',
        error: { code: 'PLAT-MOD-5001', message: 'The code says quite-another, the manifest other-id.' },
      },
    ])
    expect(runtime.output(other.deployment)).not.toMatch(/^configure$/m)
  })

  test('because it has gone in the meantime is a result too', async () => {
    const runtime = processes()
    const calm = await candidate(runtime, 'calm')
    await runtime.end(calm.deployment, 'SIGKILL')
    expect(await runLifecycle(runtime, [calm], short)).toMatchObject([
      { outcome: 'Failed', error: { code: 'PLAT-MOD-5004' } },
    ])
  })

  test('because it was stopped before does not begin again', async () => {
    const runtime = processes()
    const calm = await candidate(runtime, 'calm')
    await runLifecycle(runtime, [calm], short)
    const stop = { method: 'POST', path: '/_platform/v1/stop' }
    await runtime.request(calm.deployment, stop, { timeoutMs: 5000, maxBytes: 1000 })
    expect(await runLifecycle(runtime, [calm], short)).toMatchObject([
      { outcome: 'Failed', error: { code: 'PLAT-MOD-5004', message: expect.stringContaining('Stopped') } },
    ])
  })

  test('publishes nothing in the name of others', async () => {
    const runtime = processes()
    const [loaded] = await runLifecycle(runtime, [await candidate(runtime, 'answers-wrong-json')], short)
    expect(loaded?.published).toEqual([{ type: 'module.answers-wrong-json.done', data: { isFine: true } }])
  })
})

test('slots of the code that differ from spec.navSlots are a warning, and the module runs', async () => {
  const runtime = processes()
  const loaded = await runLifecycle(runtime, [await candidate(runtime, 'calm', { navSlots: [] })], short)
  expect(loaded).toMatchObject([{ outcome: 'Running', warnings: [slotWarning] }])
})
