// Imported first, because it sets the registry allowlist and the trusted keys, which core reads when it is imported.
import {
  requestInstall,
  requestUninstall,
  install,
  noTraces,
  output,
  pick,
  readActorLog,
  runtime,
  storedTraces,
  takeEvents,
} from '../../core/support/module-platform.ts'
import { pushModule, registry } from '../../core/support/module-images.ts'
import { cases, expectEnd } from '../../core/support/module-cases.ts'
import { manifestFor } from '../../support/module-manifest.ts'
import { describe, expect, test, vi } from 'vitest'
import * as Job from '@platform/core/jobs/job'
import * as Module from '@platform/core/modules/module'
import { reportedState } from '@platform/worker/modules/records'
import { supervise } from '@platform/worker/modules/supervise'
import { countStoreCalls, onStoreCall } from '../../support/store-calls.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { rounds, sampled } from '../../support/long.ts'
import { holdLease } from '@platform/core/operations/lease'
import { operationLeaseMs } from '@platform/core/operations/operation'
import { advanceClock } from '../../support/clock.ts'
import { claimed, pendingOperation } from '../../core/support/operations.ts'

await bootstrapPlatform()

const setUp = async () => ({ caller: await newCaller(undefined, 'PlatformAdmin'), id: newModuleId() })
const completedSteps = (names: string[]) => names.map((name) => ({ name, status: 'Completed' }))
const runningHooks = ['configure', 'start']

async function comparableTraces(id: string) {
  const traces = await storedTraces(id)
  return { ...traces, row: { ...traces.row, updatedAtMs: 0 } }
}

describe('an installation', () => {
  test('runs a module, reserves its routes, and publishes events and steps', async () => {
    const { caller, id } = await setUp()
    const job = await install(caller, { id, subscribes: ['platform.cluster.deleted'] })
    const steps = ['verify', 'deploy', 'configure', 'start', 'probe', 'publish']
    expect(job).toMatchObject({ status: 'Completed', result: { output: 'Version 1.0.0 runs.', exitCode: 0 } })
    expect(job.steps).toMatchObject(completedSteps(steps))
    const module = { state: 'Running', health: 'Healthy', verified: true, verifiedBy: 'tests', warnings: [] }
    expect(await Module.read(id)).toMatchObject({ ...module, checks: [{ name: 'behaviour', status: 'Healthy' }] })
    expect('jobId' in (await Module.read(id))).toBe(false)
    const { row, claim, deployments } = await storedTraces(id)
    expect(deployments).toEqual([row?.deployment?.id])
    expect(JSON.parse(String(claim))).toEqual({
      apiBasePath: `/api/${id}`,
      deployment: row?.deployment,
      subscriptions: ['platform.cluster.deleted'],
      permissions: [],
      publisher: 'key tests',
    })
    expect((await readActorLog(id)).hooks).toEqual(runningHooks)
    const events = await takeEvents(caller)
    const names = ['job.queued', 'job.started', 'job.completed', 'module.installed', 'module.installing']
    expect(events.map(({ name }) => name).toSorted()).toEqual([...names, `module.${id}.configured`].toSorted())
    expect(events.find(({ name }) => name === 'module.installed')?.data).toEqual({
      moduleId: id,
      version: '1.0.0',
      jobId: job.id,
      verified: true,
    })
  })

  test.each([
    ['throws in start', { throwsIn: 'start' }, 'start', 'PLAT-MOD-5005', 'It throws in start.'],
    ['exits at start', { entrypoint: ['node', '/nowhere.mjs'] }, 'deploy', 'PLAT-MOD-5007', ''],
  ] as const)(
    'fails without traces if the module %s, and reports the reason',
    async (_, module, step, code, reason) => {
      const { caller, id } = await setUp()
      const neighbour = newModuleId()
      await install(caller, { id: neighbour })
      await takeEvents(caller)
      const job = await install(caller, { id, ...module })
      expect(job).toMatchObject({ status: 'Failed', statusReason: 'module_operation_failed', result: { exitCode: 1 } })
      expect(job.result?.output).toContain(reason)
      expect(job.steps?.find(({ status }) => status === 'Failed')?.name).toBe(step)
      expect(await storedTraces(id)).toEqual(noTraces)
      const [failureEvent, ...others] = (await takeEvents(caller)).filter(({ name }) => name === 'module.failed')
      expect([failureEvent?.data, others]).toEqual([
        { moduleId: id, version: '1.0.0', jobId: job.id, code, message: expect.any(String) },
        [],
      ])
      expect(job.result?.output).toBe(`${failureEvent?.data.message} (${code})`)
      expect((await readActorLog(neighbour)).hooks).toEqual(runningHooks)
    },
  )

  test('runs beside others, and each module gets its path', async () => {
    const { caller } = await setUp()
    const ids = Array.from({ length: rounds(2, 5) }, newModuleId)
    const requests = []
    for (const id of ids) requests.push(await requestInstall(caller, (await pushModule({ id })).reference))
    await Promise.all(requests.map((request) => runModuleOperation(request, pick)))
    for (const [index, id] of ids.entries()) {
      expect((await Job.read(caller, requests[index]?.jobId ?? '')).status).toBe('Completed')
      expect((await readActorLog(id)).hooks).toEqual(runningHooks)
      expect(JSON.parse(String((await storedTraces(id)).claim)).deployment.moduleId).toBe(id)
    }
  })

  test('keeps at most 50 subscriptions, with a warning', () => {
    const subscriptions = Array.from({ length: 60 }, (_, index) => `module.other.event${index}`)
    expect(reportedState({ subscriptions, warnings: [] }, manifestFor('m', { events: ['module.other.*'] }))).toEqual({
      subscriptions: subscriptions.slice(0, 50),
      warnings: ['Only the first 50 subscriptions are used.'],
    })
  })

  test.each([
    [[], ['platform.user.created', 'module.other.done']],
    [['platform.user.created'], ['module.other.done']],
    [['platform.user.*', 'module.other.done'], []],
  ])('ignores subscriptions that the manifest does not declare: %j', (events, undeclared) => {
    const subscriptions = ['platform.user.created', 'module.other.done']
    const state = reportedState({ subscriptions, warnings: [] }, manifestFor('m', { events }))
    expect(state.subscriptions).toEqual(subscriptions.filter((type) => !undeclared.includes(type)))
    expect(state.warnings).toEqual(undeclared.map((type) => expect.stringMatching(`^${type} is not in spec.events`)))
  })

  test('makes 11 store calls, and an uninstallation 9', async () => {
    const { caller, id } = await setUp()
    const installation = await requestInstall(caller, (await pushModule({ id })).reference)
    expect(await countStoreCalls(() => runModuleOperation(installation, pick))).toBe(11)
    const removal = await requestUninstall(caller, id)
    expect(await countStoreCalls(() => runModuleOperation(removal, pick))).toBe(9)
  })

  test.each(['signature', 'image'])('fails if the %s was deleted after the request', async (deleted) => {
    const { caller, id } = await setUp()
    const { reference, digest } = await pushModule({ id })
    const request = await requestInstall(caller, reference)
    const [signature] = await registry.client.referrers(`modules/${id}`, digest)
    await registry.client.remove(`modules/${id}`, deleted === 'image' ? digest : (signature?.digest ?? ''))
    await runModuleOperation(request, pick)
    const reason = deleted === 'image' ? `${registry.host}/modules/${id}@${digest} no longer exists.` : 'No signature'
    const result = { output: expect.stringContaining(reason) }
    expect(await Job.read(caller, request.jobId)).toMatchObject({ status: 'Failed', result })
    expect(await storedTraces(id)).toEqual(noTraces)
  })
})

test('an uninstallation stops a module and removes all traces', async () => {
  const { caller, id } = await setUp()
  const neighbour = newModuleId()
  await install(caller, { id, subscribes: ['platform.user.created'] })
  await install(caller, { id: neighbour })
  await takeEvents(caller)
  const request = await requestUninstall(caller, id)
  await runModuleOperation(request, pick)
  const job = await Job.read(caller, request.jobId)
  expect(job).toMatchObject({ status: 'Completed', result: { output: 'The module is uninstalled.' } })
  expect(job.steps).toMatchObject(completedSteps(['stop', 'remove']))
  expect(await storedTraces(id)).toEqual(noTraces)
  expect(output.filter((line) => line.includes('hook stop'))).toHaveLength(1)
  const events = (await takeEvents(caller)).filter(({ name }) => name.startsWith('module.'))
  expect(events).toMatchObject([{ name: 'module.uninstalled', data: { moduleId: id, version: '1.0.0' } }])
  expect((await readActorLog(neighbour)).hooks).toEqual(runningHooks)
})

describe('an upgrade', () => {
  test('serves the old release until the new one is healthy, then stops and removes it', async () => {
    const { caller, id } = await setUp()
    await install(caller, { id })
    const { row: old } = await storedTraces(id)
    await takeEvents(caller)
    const { reference } = await pushModule({ id, version: '1.1.0', configureMs: 300 })
    const request = await requestInstall(caller, reference)
    const upgrading = runModuleOperation(request, pick)
    expect(await Module.read(id)).toMatchObject({ state: 'Upgrading', version: '1.0.0', jobId: request.jobId })
    expect((await readActorLog(id)).hooks).toEqual(runningHooks)
    await upgrading
    expect(await Job.read(caller, request.jobId)).toMatchObject({ status: 'Completed' })
    const { row, claim, deployments } = await storedTraces(id)
    expect(row).toMatchObject({ state: 'Running', release: { version: '1.1.0' }, installedAtMs: old?.installedAtMs })
    expect([deployments, JSON.parse(String(claim)).deployment]).toEqual([[row?.deployment?.id], row?.deployment])
    expect(row?.deployment?.id).not.toBe(old?.deployment?.id)
    expect(output.filter((line) => line.includes('hook stop'))).toHaveLength(1)
    const installEvent = (await takeEvents(caller)).find(({ name }) => name === 'module.installed')
    expect(installEvent?.data).toMatchObject({ version: '1.1.0', previousVersion: '1.0.0' })
  })

  test('keeps the old release unchanged when it fails', async () => {
    const { caller, id } = await setUp()
    await install(caller, { id })
    const tracesBefore = await comparableTraces(id)
    expect((await install(caller, { id, version: '1.1.0', throwsIn: 'start' })).status).toBe('Failed')
    expect(await comparableTraces(id)).toEqual(tracesBefore)
    expect((await readActorLog(id)).hooks).toEqual(runningHooks)
  })

  test('completes although the old release fails to stop', async () => {
    const { caller, id } = await setUp()
    await install(caller, { id, throwsIn: 'stop' })
    expect(await install(caller, { id, version: '1.1.0' })).toMatchObject({ status: 'Completed' })
    const { row, deployments } = await storedTraces(id)
    expect(deployments).toEqual([row?.deployment?.id])
  })

  test('fails if another module has reserved its new path', async () => {
    const { caller, id } = await setUp()
    const otherId = newModuleId()
    await install(caller, { id })
    const { reference } = await pushModule({ id, version: '1.1.0', spec: { apiBasePath: `/api/${otherId}` } })
    const request = await requestInstall(caller, reference)
    expect(await install(caller, { id: otherId })).toMatchObject({ status: 'Completed' })
    await runModuleOperation(request, pick)
    const result = { output: `Module ${otherId} already uses the API path /api/${otherId}.` }
    expect(await Job.read(caller, request.jobId)).toMatchObject({ status: 'Failed', result })
    expect(await Module.read(id)).toMatchObject({ state: 'Running', version: '1.0.0', apiBasePath: `/api/${id}` })
    expect((await readActorLog(otherId)).hooks).toEqual(runningHooks)
  })

  test('repairs a failed module, and changes nothing if it fails itself', async () => {
    const { caller, id } = await setUp()
    const { reference } = await pushModule({ id })
    await runModuleOperation(await requestInstall(caller, reference), pick)
    const list = async () => (await runtime.list()).map((status) => ({ ...status, state: 'failed' as const }))
    await supervise(async () => ({ ...runtime, list }))
    const tracesBefore = await comparableTraces(id)
    expect(tracesBefore.row).toMatchObject({ state: 'Failed', error: { code: 'PLAT-MOD-5008' } })
    expect((await install(caller, { id, version: '1.0.1', throwsIn: 'configure' })).status).toBe('Failed')
    expect(await comparableTraces(id)).toEqual(tracesBefore)
    await runModuleOperation(await requestInstall(caller, reference), pick)
    const module = await Module.read(id)
    expect(module).toMatchObject({ state: 'Running', health: 'Healthy' })
    expect('lastError' in module).toBe(false)
  })
})

const names = Object.keys(cases) as (keyof typeof cases)[]

const failpoints = {
  installation: ['operation.begun', 'module.verified', 'module.deployed', 'module.loaded', 'module.published'],
  'installation that fails': ['module.compensated'],
  upgrade: ['module.deployed', 'module.loaded', 'module.published'],
  'upgrade that fails': ['module.compensated'],
  uninstallation: ['module.stopped', 'module.forgotten'],
} as const

const interruptions = names.flatMap((name) => failpoints[name].map((failpoint) => [name, failpoint] as const))

test.each(sampled(interruptions, 5))('resumes an %s that stops at %s', async (name, failpoint) => {
  const operation = await cases[name]()
  vi.stubEnv('PLAT_FAILPOINT', `${failpoint}=throw`)
  vi.resetModules()
  // The failpoint is read at import, so the failing worker is a separate import.
  const crashingWorker = await import('../../core/support/module-operations.ts')
  vi.unstubAllEnvs()
  await crashingWorker.runModuleOperation(operation.accepted, pick).catch(() => undefined)
  const { status } = await Job.read(operation.caller, operation.accepted.jobId)
  expect(status).toBe(failpoint === 'module.published' ? 'Completed' : 'Running')
  advanceClock(operationLeaseMs + 1)
  await runModuleOperation(operation.accepted, pick)
  await expectEnd(operation)
})

test('continues with the next step after a lease renewal has failed', async () => {
  const caller = await newCaller()
  const operation = await pendingOperation(caller)
  const lease = holdLease(await claimed(operation))
  {
    using _ = onStoreCall({
      before: async () => {
        throw new Error('The connection has ended.')
      },
    })
    await expect(lease.renew()).rejects.toThrow('The connection has ended.')
  }
  await lease.startStep('deploy')
  expect((await Job.read(caller, operation.id)).steps).toMatchObject([{ status: 'Running' }, { status: 'Pending' }])
})
