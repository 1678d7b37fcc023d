// First: it sets what the platform may reach, which core reads when it is imported.
import {
  setMood,
  pick,
  runtime,
  readActorLog,
  storedTraces,
  runningModule,
  takeEventData,
} from '../../core/support/module-platform.ts'
import { expect, test } from 'vitest'
import { now } from '@platform/core/clock'
import * as Module from '@platform/core/modules/module'
import { supervise } from '@platform/worker/modules/supervise'
import { RuntimeError } from '@platform/worker/runtimes/port'
import { waitFor } from '../../support/wait-for.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { fastTimers } from '../../support/fast-timers.ts'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'
import { advanceClock, notificationTypes } from '../../core/support/notifications.ts'

await bootstrapPlatform()
const second = 1000

const tick = () => supervise(pick)
const away = async () => ({
  ...runtime,
  list: () => Promise.reject(new RuntimeError('unavailable', 'It is away.')),
})

test('a module that is as it was costs one small write a tick, and one look for events where it has subscribed', async () => {
  await runningModule()
  // The list of modules, and the write.
  expect(await countStoreCalls(tick)).toBe(2)
  await runningModule({ subscribes: ['platform.user.created'], jobs: { work: 60 } })
  expect(await countStoreCalls(tick)).toBe(5)
})

test('a tick renews what is known of a module, and tells nobody where nothing has changed', async () => {
  const { caller, id } = await runningModule()
  advanceClock(60 * second)
  await tick()
  const { checks, health } = await Module.read(id)
  expect([health, checks]).toMatchObject(['Healthy', [{ name: 'mood', status: 'Healthy' }]])
  expect(Date.parse(checks[0]?.checkedAt ?? '')).toBeGreaterThan(now() - 10 * second)
  expect(await takeEventData(caller)).toEqual([])
})

test.each([
  ['Degraded', 'Degraded'],
  ['Unhealthy', 'Unhealthy'],
] as const)(
  'a critical check that is %s makes the module %s, which is told once, and its recovery too',
  async (status, health) => {
    const { caller, id } = await runningModule()
    await setMood(id, { status })
    await tick()
    await tick()
    expect(await Module.read(id)).toMatchObject({ health, checks: [{ status }] })
    const changed = { name: 'module.health_changed', moduleId: id, version: '1.0.0' }
    expect(await takeEventData(caller)).toEqual([{ ...changed, health, previousHealth: 'Healthy' }])
    await setMood(id, { status: 'Healthy' })
    await tick()
    await tick()
    expect(await takeEventData(caller)).toEqual([{ ...changed, health: 'Healthy', previousHealth: health }])
  },
)

test('a module that declares no checks and does not answer twice in a row has one check that says so', async () => {
  const { id } = await runningModule({ spec: { healthChecks: [] } })
  expect(await Module.read(id)).toMatchObject({ health: 'Healthy', checks: [] })
  await runtime.remove((await runtime.list())[0]!.deployment, 0)
  await supervise(away)
  expect(await Module.read(id)).toMatchObject({ health: 'Healthy', checks: [] })
  await supervise(away)
  const check = { name: 'health', status: 'Unhealthy', description: 'The health endpoint does not answer.' }
  expect(await Module.read(id)).toMatchObject({ health: 'Unhealthy', checks: [check] })
})

test('a module that does not answer twice in a row is Unhealthy, which is told once to those who install modules', async () => {
  const { caller, id } = await runningModule()
  const reader = await newCaller(caller.organisationId, 'Viewer')
  await runtime.remove((await runtime.list())[0]!.deployment, 0)
  await supervise(away)
  expect((await Module.read(id)).health).toBe('Healthy')
  expect(await takeEventData(caller)).toEqual([])
  await supervise(away)
  await supervise(away)
  const about = { moduleId: id, version: '1.0.0' }
  expect(await takeEventData(caller)).toEqual([
    { name: 'module.heartbeat_missed', ...about, missed: 2 },
    { name: 'module.health_changed', ...about, health: 'Unhealthy', previousHealth: 'Healthy' },
  ])
  expect(await Module.read(id)).toMatchObject({ health: 'Unhealthy', checks: [{ status: 'Unhealthy' }] })
  expect(await notificationTypes(caller)).toEqual(['ModuleFailed', 'ModuleInstalled'])
  expect(await notificationTypes(reader)).toEqual([])
  // It runs again, and answers.
  await tick()
  await tick()
  expect((await Module.read(id)).health).toBe('Healthy')
  expect((await takeEventData(caller)).map(({ name }) => name)).toContain('module.health_changed')
})

test('a health endpoint that says no is an answer; one that says nothing is none, and holds up nobody else', async () => {
  using _ = fastTimers(5000)
  const { id } = await runningModule()
  const { id: neighbour } = await runningModule()
  await setMood(id, { alive: 'no' })
  await tick()
  expect((await storedTraces(id)).health).toMatchObject({ missed: 0, revision: 1 })
  await setMood(id, { alive: 'hangs' })
  let isOver = false
  const ticking = tick().finally(() => (isOver = true))
  await waitFor('the neighbour has its beat', async () => (await storedTraces(neighbour)).health?.['revision'] === 2)
  expect(isOver).toBe(false)
  await ticking
  expect((await storedTraces(id)).health).toMatchObject({ missed: 1, health: 'Healthy' })
})

test('background jobs are called when their time has come: never twice in one interval, however many ticks there are', async () => {
  const { id } = await runningModule({ jobs: { often: 30, minutely: 60, hourly: 3600 } })
  const calls = async () => Object.groupBy((await readActorLog(id)).jobs, (job) => job)
  const counts = async () => {
    const { often = [], minutely = [], hourly = [] } = await calls()
    return [often.length, minutely.length, hourly.length]
  }
  await Promise.all([tick(), tick(), tick()])
  expect(await counts()).toEqual([1, 1, 1])
  await tick()
  advanceClock(59 * second)
  await Promise.all([tick(), tick()])
  // A tick may come a little early.
  expect(await counts()).toEqual([2, 2, 1])
  advanceClock(61 * second)
  await tick()
  expect(await counts()).toEqual([3, 3, 1])
  advanceClock(3600 * second)
  await tick()
  await tick()
  expect(await counts()).toEqual([4, 4, 2])
})

test('a job that is called seldom is missed by its own runs, however many good beats lie between them', async () => {
  const { caller, id } = await runningModule({ jobs: { hourly: 3600, minutely: 60 } })
  await setMood(id, { jobs: 'throw' })
  await tick()
  await setMood(id, { jobs: 'run' })
  advanceClock(60 * second)
  await tick()
  await tick()
  expect((await Module.read(id)).health).toBe('Healthy')
  await setMood(id, { jobs: 'throw' })
  advanceClock(3600 * second)
  await tick()
  expect((await Module.read(id)).health).toBe('Unhealthy')
  expect((await takeEventData(caller)).map(({ name }) => name)).toContain('module.heartbeat_missed')
})

test('a job that fails twice in a row is two missed beats; the module goes on being asked', async () => {
  const { caller, id } = await runningModule({ jobs: { work: 60 } })
  await setMood(id, { jobs: 'throw' })
  await tick()
  advanceClock(60 * second)
  await tick()
  expect((await Module.read(id)).health).toBe('Unhealthy')
  expect((await takeEventData(caller)).map(({ name }) => name)).toEqual([
    'module.heartbeat_missed',
    'module.health_changed',
  ])
  advanceClock(60 * second)
  await tick()
  expect(await takeEventData(caller)).toEqual([])
  await setMood(id, { jobs: 'run' })
  advanceClock(60 * second)
  await tick()
  expect((await Module.read(id)).health).toBe('Healthy')
  expect((await readActorLog(id)).jobs).toHaveLength(4)
  const names = (await takeEventData(caller)).map(({ name }) => name)
  expect(new Set(names)).toEqual(new Set(['module.health_changed', `module.${id}.worked`]))
  expect(names).toHaveLength(2)
})
