// Imported first, because it sets the registry allowlist and the trusted keys, which core reads when it is imported.
import {
  setBehaviour,
  pick,
  runtime,
  readActorLog,
  storedTraces,
  runningModule,
  takeEventData,
  requestInstall,
  requestUninstall,
  noTraces,
  openRuntimeWithoutContainers,
} from '../../core/support/module-platform.ts'
import { pushModule } from '../../core/support/module-images.ts'
import * as fc from 'fast-check'
import { slotWarning } from '@platform/contract/module'
import { describe, expect, onTestFinished, test } from 'vitest'
import { config } from '@platform/core/config'
import { now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { update } from '@platform/core/db/table'
import * as Module from '@platform/core/modules/module'
import { aggregateOf, ready } from '@platform/core/platform/health'
import { ownKeyName, serialise, type StoredCheck } from '@platform/core/modules/record'
import { healthOf } from '@platform/worker/modules/health-check'
import { dueJobs, type JobSchedule } from '@platform/worker/modules/job-schedule'
import { findModule } from '@platform/worker/modules/records'
import { supervise } from '@platform/worker/modules/supervise'
import { type ModuleRuntime, RuntimeError } from '@platform/worker/runtimes/port'
import { captureLog } from '../../support/log.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { waitFor } from '../../support/wait-for.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { fastTimers } from '../../support/fast-timers.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { advanceClock } from '../../support/clock.ts'
import { readNotificationTypes } from '../../core/support/notifications.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'

await bootstrapPlatform()
const secondMs = 1000

const tick = () => supervise(pick)
const tickUnavailable = () => {
  const list = () => Promise.reject(new RuntimeError('unavailable', 'Unavailable.'))
  return supervise(async () => ({ ...runtime, list }))
}
const namesOf = (events: { name: string }[]) => events.map(({ name }) => name)

async function readyModule() {
  const { body } = await ready()
  const checks = body.checks.filter(({ source }) => source.startsWith('module:'))
  return { checks, aggregate: aggregateOf(checks) }
}

test('makes two store calls for an unchanged module, five with a subscription and a job', async () => {
  await runningModule()
  expect(await countStoreCalls(tick)).toBe(2)
  await runningModule({ subscribes: ['platform.user.created'], jobs: { work: 60 } })
  expect(await countStoreCalls(tick)).toBe(5)
})

test('refreshes the checks of a module without events', async () => {
  const { caller, id } = await runningModule()
  advanceClock(60 * secondMs)
  await tick()
  const { checks, health } = await Module.read(id)
  expect([health, checks]).toMatchObject(['Healthy', [{ name: 'behaviour', status: 'Healthy' }]])
  expect(Date.parse(checks[0]?.checkedAt ?? '')).toBeGreaterThan(now() - 10 * secondMs)
  expect(await takeEventData(caller)).toEqual([])
})

test.each(['Degraded', 'Unhealthy'] as const)(
  'publishes one event when a module becomes %s, and one when it recovers',
  async (status) => {
    const { caller, id } = await runningModule()
    await setBehaviour(id, { status })
    await tick()
    await tick()
    expect(await Module.read(id)).toMatchObject({ health: status, checks: [{ status }] })
    const healthEvent = { name: 'module.health_changed', moduleId: id, version: '1.0.0' }
    expect(await takeEventData(caller)).toEqual([{ ...healthEvent, health: status, previousHealth: 'Healthy' }])
    await setBehaviour(id, { status: 'Healthy' })
    await tick()
    await tick()
    expect(await takeEventData(caller)).toEqual([{ ...healthEvent, health: 'Healthy', previousHealth: status }])
  },
)

test('marks a module as Unhealthy after two missed heartbeats, and notifies users who may install modules', async () => {
  const { caller, id } = await runningModule({ spec: { healthChecks: [] } })
  const reader = await newCaller(caller.organisationId, 'Viewer')
  await runtime.remove((await runtime.list())[0]!.deployment, 0)
  await tickUnavailable()
  expect(await Module.read(id)).toMatchObject({ health: 'Healthy', checks: [] })
  expect(await takeEventData(caller)).toEqual([])
  await tickUnavailable()
  await tickUnavailable()
  const identity = { moduleId: id, version: '1.0.0' }
  expect(await takeEventData(caller)).toEqual([
    { name: 'module.heartbeat_missed', ...identity, missed: 2 },
    { name: 'module.health_changed', ...identity, health: 'Unhealthy', previousHealth: 'Healthy' },
  ])
  // Without declared checks, the health endpoint is the only check.
  const check = { name: 'health', status: 'Unhealthy', description: 'The health endpoint does not respond.' }
  expect(await Module.read(id)).toMatchObject({ health: 'Unhealthy', checks: [check] })
  expect(await readNotificationTypes(caller)).toEqual(['ModuleFailed', 'ModuleInstalled'])
  expect(await readNotificationTypes(reader)).toEqual([])
  await tick()
  await tick()
  expect((await Module.read(id)).health).toBe('Healthy')
  expect(namesOf(await takeEventData(caller))).toContain('module.health_changed')
})

test('counts a heartbeat as missed only if the health endpoint does not respond, and delays no other module', async () => {
  using _ = fastTimers(5000)
  const { id } = await runningModule()
  const { id: neighbour } = await runningModule()
  await setBehaviour(id, { alive: 'no' })
  await tick()
  expect((await storedTraces(id)).health).toMatchObject({ missed: 0, revision: 1 })
  await setBehaviour(id, { alive: 'hangs' })
  let isOver = false
  const ticking = tick().finally(() => (isOver = true))
  await waitFor('the neighbour is checked', async () => (await storedTraces(neighbour)).health?.['revision'] === 2)
  expect(isOver).toBe(false)
  await ticking
  expect((await storedTraces(id)).health).toMatchObject({ missed: 1, health: 'Healthy' })
})

test('a module that does not respond degrades the platform, even if its checks are informational', async () => {
  const check = { name: 'behaviour', path: '/health/behaviour', tags: ['informational' as const] }
  const { id } = await runningModule({ spec: { healthChecks: [check] } })
  await runtime.remove((await runtime.list())[0]!.deployment, 0)
  await tickUnavailable()
  expect((await readyModule()).aggregate).toBe('Healthy')
  await tickUnavailable()
  expect((await readyModule()).aggregate).toBe('Degraded')
  expect((await Module.read(id)).health).toBe('Unhealthy')
})

test('a module that was approved in a container fails with the reason if no container can run', async () => {
  const { id } = await runningModule()
  const { release, deployment } = (await findModule(id))!
  // A module that the platform itself signed may run as a process, but only if it was installed as one.
  const set = {
    release: serialise({ ...release, isVerified: true, verifiedBy: ownKeyName }),
    deployment: serialise({ ...deployment, runtime: 'container' }),
  }
  await update(keys.module(id), { set })
  await runtime.remove(deployment!, 0)
  const fallback = await openRuntimeWithoutContainers('fallback')
  await supervise(async () => fallback)
  const message = expect.stringMatching(/^This module requires a container.*PLAT_MODULE_ISOLATION=process/)
  expect(await Module.read(id)).toMatchObject({ state: 'Failed', lastError: { code: 'PLAT-MOD-5007', message } })
  expect(await fallback.list()).toEqual([])
  await fallback.close(0)
})

describe('background jobs', () => {
  test('run at most once per interval, however often the supervision runs', async () => {
    const { id } = await runningModule({ jobs: { often: 30, minutely: 60, hourly: 3600 } })
    const readCounts = async () => {
      const { often = [], minutely = [], hourly = [] } = Object.groupBy((await readActorLog(id)).jobs, (job) => job)
      return [often.length, minutely.length, hourly.length]
    }
    await Promise.all([tick(), tick()])
    expect(await readCounts()).toEqual([1, 1, 1])
    await tick()
    // A tick may be slightly early.
    advanceClock(59 * secondMs)
    await Promise.all([tick(), tick()])
    expect(await readCounts()).toEqual([2, 2, 1])
    advanceClock(61 * secondMs)
    await tick()
    expect(await readCounts()).toEqual([3, 3, 1])
    advanceClock(3600 * secondMs)
    await tick()
    await tick()
    expect(await readCounts()).toEqual([4, 4, 2])
  })

  test('of a long interval make the module Unhealthy after two failures, despite successful heartbeats', async () => {
    const { caller, id } = await runningModule({ jobs: { hourly: 3600, minutely: 60 } })
    await setBehaviour(id, { jobs: 'throw' })
    await tick()
    await setBehaviour(id, { jobs: 'run' })
    advanceClock(60 * secondMs)
    await tick()
    await tick()
    expect((await Module.read(id)).health).toBe('Healthy')
    await setBehaviour(id, { jobs: 'throw' })
    advanceClock(3600 * secondMs)
    await tick()
    expect((await Module.read(id)).health).toBe('Unhealthy')
    expect(namesOf(await takeEventData(caller))).toContain('module.heartbeat_missed')
  })

  test('that fail twice make the module Unhealthy', async () => {
    const { caller, id } = await runningModule({ jobs: { work: 60 } })
    await setBehaviour(id, { jobs: 'throw' })
    await tick()
    advanceClock(60 * secondMs)
    await tick()
    expect((await Module.read(id)).health).toBe('Unhealthy')
    const failingCheck = {
      name: 'background-jobs',
      status: 'Unhealthy',
      description: expect.stringContaining(': work.'),
    }
    const { aggregate, checks } = await readyModule()
    expect([aggregate, checks.at(-1)]).toMatchObject(['Degraded', failingCheck])
    expect(await takeEventData(caller)).toMatchObject([
      { name: 'module.heartbeat_missed', backgroundJobId: 'work', missed: 2 },
      { name: 'module.health_changed' },
    ])
    advanceClock(60 * secondMs)
    await tick()
    expect(await takeEventData(caller)).toEqual([])
    await setBehaviour(id, { jobs: 'run' })
    advanceClock(60 * secondMs)
    await tick()
    expect((await Module.read(id)).health).toBe('Healthy')
    expect((await readyModule()).aggregate).toBe('Healthy')
    expect((await readActorLog(id)).jobs).toHaveLength(4)
    const expected = ['module.health_changed', `module.${id}.worked`]
    expect(namesOf(await takeEventData(caller)).toSorted()).toEqual(expected.toSorted())
  })
})

describe('job schedule', () => {
  const job = (intervalSeconds: number, id = 'job') => ({ id, description: '', intervalSeconds })

  function dueTicks(intervalSeconds: number, ticksMs: readonly number[]): number[] {
    let schedule: JobSchedule = {}
    return ticksMs.filter((tickMs) => {
      const { due, slots } = dueJobs([job(intervalSeconds)], schedule, tickMs)
      schedule = slots
      return due.length > 0
    })
  }

  const minutes = (count: number) => Array.from({ length: count }, (_, index) => index * 60_000)

  test('runs a minutely job at every tick, despite jitter of up to 4 seconds', () => {
    for (const jitterMs of [0, 200, 2000, 4000]) {
      const ticks = minutes(50).map((ms, index) => 1_000_000 + ms + (index % 2 === 0 ? 0 : jitterMs))
      expect(dueTicks(60, ticks)).toEqual(ticks)
    }
  })

  test('keeps the interval on average, and skips missed runs', () => {
    expect(dueTicks(90, minutes(19))).toHaveLength(13)
    expect(dueTicks(3600, minutes(181))).toHaveLength(4)
    expect(dueTicks(60, [0, 86_400_000, 86_400_001])).toEqual([0, 86_400_000])
  })

  test('accepts a job id that is also the name of an object member', () => {
    const constructor = job(60, 'constructor')
    expect(dueJobs([constructor], {}, 1000)).toEqual({ due: [constructor], slots: { constructor: 1000 } })
    expect(dueJobs([constructor], { constructor: 1000 }, 2000).due).toEqual([])
  })

  test('runs a job when the clock was set back by more than an interval', () => {
    expect(dueTicks(60, [1_000_000, 1_030_000, 100_000, 130_000])).toEqual([1_000_000, 100_000])
  })

  test('never runs a job twice in an interval', () => {
    const ticks = fc.array(fc.integer({ min: 0, max: 400_000 }), { minLength: 2, maxLength: 60 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), ticks, (intervalSeconds, steps) => {
        let atMs = 1_000_000
        const ticks = dueTicks(
          intervalSeconds,
          steps.map((step) => (atMs += step)),
        )
        const toleranceMs = Math.min(5000, intervalSeconds * 500)
        const slotOf = (ms: number) => Math.floor((ms - (ticks[0] ?? 0) + toleranceMs) / (intervalSeconds * 1000))
        expect(new Set(ticks.map(slotOf)).size).toBe(ticks.length)
      }),
      { seed: 4 },
    )
  })
})

const check = (status: StoredCheck['status'], ...tags: StoredCheck['tags']): StoredCheck => {
  return { name: 'check', status, tags, description: '', durationMs: 1, checkedAtMs: 1 }
}

test.each([
  [[], 'Healthy'],
  [[check('Healthy', 'critical')], 'Healthy'],
  [[check('Unhealthy', 'critical')], 'Unhealthy'],
  [[check('Degraded', 'critical')], 'Degraded'],
  [[check('Unhealthy', 'degradable')], 'Degraded'],
  [[check('Unhealthy', 'informational')], 'Healthy'],
  [[check('Unhealthy')], 'Degraded'],
  [[check('Unhealthy', 'informational', 'critical')], 'Unhealthy'],
  [[check('Unhealthy', 'informational', 'degradable')], 'Degraded'],
  [[check('Healthy', 'critical'), check('Unhealthy', 'degradable')], 'Degraded'],
  [[check('Degraded', 'degradable'), check('Unhealthy', 'critical')], 'Unhealthy'],
] as const)('aggregates %j to %s', (checks, health) => {
  const state = { checks: [...checks], missedRuns: {} }
  expect(healthOf({ ...state, missed: 0 })).toBe(health)
  expect(healthOf({ ...state, missed: 1, missedRuns: { job: 1 } })).toBe(health)
  expect(healthOf({ ...state, missed: 2 })).toBe('Unhealthy')
  expect(healthOf({ ...state, missed: 0, missedRuns: { job: 2 } })).toBe('Unhealthy')
})

async function pausedHealthCheck() {
  const [responded, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slowRuntime: ModuleRuntime = {
    ...runtime,
    request: async (...input) => {
      const response = await runtime.request(...input)
      responded.resolve()
      await resumed.promise
      return response
    },
  }
  const supervising = supervise(async () => slowRuntime)
  await responded.promise
  return async () => {
    resumed.resolve()
    await supervising
  }
}

test('logs slots that differ from the manifest once after each crash', async () => {
  Object.assign(config, { PLAT_LOG_LEVEL: 'warn' })
  onTestFinished(() => void Object.assign(config, { PLAT_LOG_LEVEL: 'error' }))
  const id = newModuleId()
  const navSlots = [{ slotId: 'nav.primary', id, label: 'X', icon: 'hand', route: `/modules/${id}`, order: 1 }]
  await runningModule({ id, spec: { navSlots } })
  await runningModule()
  const warningsAfter = async (crashes: number) => {
    const list = async () => (await runtime.list()).map((status) => ({ ...status, crashes }))
    const lines = await captureLog(() => supervise(async () => ({ ...runtime, list })))
    return lines.filter(({ message }) => message === slotWarning)
  }
  expect(await warningsAfter(0)).toEqual([])
  expect(await warningsAfter(1)).toMatchObject([
    { moduleId: id, slots: [], manifestSlots: [`nav.primary ${id} /modules/${id}`] },
  ])
  expect(await warningsAfter(1)).toEqual([])
  expect(await warningsAfter(2)).toHaveLength(1)
})

test('records no health check that ends after the uninstallation', async () => {
  const { caller, id } = await runningModule()
  await setBehaviour(id, { status: 'Unhealthy' })
  const resume = await pausedHealthCheck()
  await runModuleOperation(await requestUninstall(caller, id), pick)
  await takeEventData(caller)
  await resume()
  expect(await storedTraces(id)).toEqual(noTraces)
  expect(await takeEventData(caller)).toEqual([])
})

test('records no health check of the previous release', async () => {
  const { caller, id } = await runningModule()
  await setBehaviour(id, { status: 'Unhealthy' })
  const resume = await pausedHealthCheck()
  const { reference } = await pushModule({ id, version: '2.0.0' })
  await runModuleOperation(await requestInstall(caller, reference), pick)
  await resume()
  expect(await Module.read(id)).toMatchObject({ version: '2.0.0', health: 'Healthy', checks: [{ status: 'Healthy' }] })
})
