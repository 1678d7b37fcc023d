// First: it sets what the platform may reach, which core reads when it is imported.
import {
  requestUninstall,
  setMood,
  noTraces,
  pick,
  runtime,
  readActorLog,
  storedTraces,
} from '../../core/support/module-platform.ts'
import { afterEach, expect, test, vi } from 'vitest'
import { commit } from '@platform/core/outbox/commit'
import { nowSeconds } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { batchPut, query } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { deliverWaiting } from '@platform/worker/modules/deliver-events'
import { supervise } from '@platform/worker/modules/supervise'
import { waitFor } from '../../support/wait-for.ts'
import * as Webhook from '@platform/core/webhooks/webhook'
import { beforeCommand } from '../../support/store-calls.ts'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { drainOutbox, pendingRecords } from '../../core/support/outbox.ts'
import { messagesSentBy, receiveMessages } from '../../core/support/messages.ts'
import { publishUserCreated, subscriber, userCreated } from '../../core/support/module-events.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { advanceClock } from '../../core/support/notifications.ts'
import { deliveriesOf } from '../../core/support/webhooks.ts'

await bootstrapPlatform()
const [second, day] = [1000, 24 * 3_600_000]

const deliver = (id: string) => deliverWaiting(id, pick)
const heardBy = async (id: string) => (await readActorLog(id)).events.map(({ subject }) => subject)
const waitingFor = async (id: string) => (await query(keys.moduleEvents(id))).items.length
/** What is to be had at once of those about a module. Those that end the quiet of others come when they will. */
const messagesAbout = async (id: string) =>
  (await receiveMessages(config.PLAT_QUEUE_MODULES)).filter((message) => (message as ModuleMessage).moduleId === id)
interface ModuleMessage {
  moduleId: string
}

afterEach(async () => void (await receiveMessages(config.PLAT_QUEUE_MODULES)))

test('a module hears of what it has subscribed to, in every organisation and in order, and of nothing else', async () => {
  const { caller, id } = await subscriber()
  const [one, two] = [newId('org'), newId('org')]
  const first = await publishUserCreated(one, 2)
  const [second] = await publishUserCreated(two)
  await commit(caller, { writes: [], events: [{ ...userCreated(), name: 'user.deleted' } as any] })
  await drainOutbox(caller.organisationId)
  expect(await messagesAbout(id)).toContainEqual({ organisationId: one, moduleId: id })
  await deliver(id)
  const { events } = await readActorLog(id)
  expect(events).toMatchObject(
    [...first.map((subject) => [one, subject]), [two, second]].map(([organisationId, subject]) => ({
      type: 'platform.user.created',
      organisationId,
      subject,
      id: expect.stringMatching(/^evt_/),
      data: { userId: subject, username: 'ada' },
    })),
  )
  expect(await waitingFor(id)).toBe(0)
  await deliver(id)
  expect((await readActorLog(id)).events).toHaveLength(3)
})

test('many events reach a module in their order, each once, also where two workers hear of them', async () => {
  const { id } = await subscriber()
  const subjects = await publishUserCreated(newId('org'), 130)
  await Promise.all([deliver(id), deliver(id), deliver(id)])
  expect(await heardBy(id)).toEqual(subjects)
  expect(await waitingFor(id)).toBe(0)
})

test('what comes after a worker’s last look is announced again by that worker', async () => {
  const { caller, id } = await subscriber()
  await publishUserCreated(newId('org'))
  await messagesAbout(id)
  // It takes its turn, and gives it back.
  const happened = beforeCommand(/^Update/, () => publishUserCreated(newId('org'), 3), 2)
  await deliver(id)
  expect([happened(), await waitingFor(id)]).toEqual([true, 3])
  expect(await messagesAbout(id)).toContainEqual({ organisationId: caller.organisationId, moduleId: id })
  await deliver(id)
  expect(await heardBy(id)).toHaveLength(4)
})

test('events that a worker could not take out of what waits come again, and the module handles each once', async () => {
  const { id } = await subscriber()
  const subjects = await publishUserCreated(newId('org'), 3)
  vi.stubEnv('PLAT_FAILPOINT', 'module.delivered=throw')
  vi.resetModules()
  // A worker of its own, as armed as a process would be.
  const armed = await import('@platform/worker/modules/deliver-events')
  vi.unstubAllEnvs()
  await expect(armed.deliverWaiting(id, pick)).rejects.toThrow('Failpoint')
  expect(await waitingFor(id)).toBe(3)
  await deliver(id)
  expect(await waitingFor(id)).toBe(3)
  advanceClock(61 * second)
  await deliver(id)
  expect([await waitingFor(id), await heardBy(id)]).toEqual([0, subjects])
})

test('an event that a module cannot handle is handed over five times, ever later, and then dropped; the others are handled', async () => {
  const { id } = await subscriber()
  const subjects = await publishUserCreated(newId('org'), 5)
  const [first, bad = '', ...rest] = subjects
  await setMood(id, { events: { subject: bad, how: 'throw' } })
  await deliver(id)
  expect(await heardBy(id)).toEqual([first, ...rest])
  expect(await waitingFor(id)).toBe(1)
  let tries = 1
  for (let waitedMs = 0; (await waitingFor(id)) > 0; waitedMs += second) {
    const [before] = (await query(keys.moduleEvents(id))).items
    await deliver(id)
    const [after] = (await query(keys.moduleEvents(id))).items
    if (after?.['tries'] !== before?.['tries']) tries++
    expect(waitedMs).toBeLessThan(120 * second)
    advanceClock(second)
  }
  expect(tries).toBe(5)
  const [next] = await publishUserCreated(newId('org'))
  await deliver(id)
  expect(await heardBy(id)).toEqual([first, ...rest, next])
})

test('an event that ends a module’s process is dropped before the module counts as failed; the others are handled', async () => {
  const { id } = await subscriber()
  const subjects = await publishUserCreated(newId('org'), 3)
  const [, bad = '', last] = subjects
  await setMood(id, { events: { subject: bad, how: 'exit' } })
  // The module forgets how to be with each end of its process: it is told again.
  while ((await waitingFor(id)) > 0) {
    await waitFor(
      'the module answers',
      async () =>
        await setMood(id, { events: { subject: bad, how: 'exit' } }).then(
          () => true,
          () => false,
        ),
    )
    await deliver(id)
    advanceClock(second)
  }
  await waitFor('the module answers', async () =>
    readActorLog(id).then(
      () => true,
      () => false,
    ),
  )
  const [status] = await runtime.list()
  expect(status).toMatchObject({ state: 'running' })
  expect(status?.crashes).toBeLessThan(5)
  const [next] = await publishUserCreated(newId('org'))
  advanceClock(30 * second)
  await deliver(id)
  expect(await heardBy(id)).toEqual([last, next])
}, 120_000)

test('events wait for a module that does not run, and none is lost or blamed', async () => {
  const { id } = await subscriber()
  const [status] = await runtime.list()
  await runtime.remove(status!.deployment, 0)
  const subjects = await publishUserCreated(newId('org'), 3)
  for (let minute = 0; minute < 30; minute++) {
    await deliver(id)
    advanceClock(60 * second)
  }
  const { items } = await query(keys.moduleEvents(id))
  expect(items.map(({ tries }) => tries)).toEqual([undefined, undefined, undefined])
  await supervise(pick)
  // The longest pause between two tries.
  advanceClock(900 * second)
  await deliver(id)
  expect(await heardBy(id)).toEqual(subjects)
})

test('while a module is left alone messages about it bring nothing, and no further messages', async () => {
  const { id } = await subscriber()
  const [status] = await runtime.list()
  await runtime.remove(status!.deployment, 0)
  await publishUserCreated(newId('org'))
  expect(await messagesSentBy(config.PLAT_QUEUE_MODULES, () => deliver(id))).toHaveLength(1)
  const again = async () => {
    for (let count = 0; count < 5; count++) await deliver(id)
  }
  expect(await messagesSentBy(config.PLAT_QUEUE_MODULES, again)).toEqual([])
  expect(await waitingFor(id)).toBe(1)
})

test('events that nobody has taken in a day are dropped', async () => {
  const { id } = await subscriber()
  await publishUserCreated(newId('org'), 3)
  advanceClock(day + second)
  const [subject] = await publishUserCreated(newId('org'))
  await deliver(id)
  expect(await heardBy(id)).toEqual([subject])
  expect(await waitingFor(id)).toBe(0)
})

test('the heartbeat announces what waits where a message was lost', async () => {
  const { id, caller } = await subscriber()
  await publishUserCreated(newId('org'))
  await messagesAbout(id)
  await supervise(pick)
  expect(await messagesAbout(id)).toEqual([{ organisationId: caller.organisationId, moduleId: id }])
})

test('what a module publishes is told once under its own name, to webhooks and modules, and not to itself', async () => {
  const { caller, id } = await subscriber()
  const { id: listener } = await subscriber([`module.${id}.heard`])
  const webhook = await Webhook.create(caller, { url: 'https://example.com/hook', events: ['module.*'] })
  await drainOutbox(caller.organisationId)
  const [subject = ''] = await publishUserCreated(newId('org'))
  await deliver(id)
  const records = await pendingRecords(caller.organisationId)
  const events = records.flatMap((record) => record.events)
  expect(events).toMatchObject([
    {
      name: `module.${id}.heard`,
      subject,
      data: { type: 'platform.user.created' },
      id: expect.stringMatching(/^evt_/),
    },
  ])
  await drainOutbox(caller.organisationId)
  expect(await deliveriesOf(caller, webhook.id)).toMatchObject([
    { eventType: `module.${id}.heard`, eventId: events[0]?.id },
  ])
  await deliver(listener)
  expect((await readActorLog(listener)).events).toMatchObject([
    { type: `module.${id}.heard`, subject, organisationId: caller.organisationId, id: events[0]?.id },
  ])
  await deliver(id)
  expect(await heardBy(id)).toHaveLength(1)
})

test('nothing waits for a module that was uninstalled, nor for one that never was', async () => {
  const { caller, id } = await subscriber()
  await publishUserCreated(newId('org'))
  await deliver(id)
  await publishUserCreated(newId('org'), 3)
  await runModuleOperation(await requestUninstall(caller, id), pick)
  expect(await storedTraces(id)).toEqual(noTraces)
  const other = newModuleId()
  await batchPut([{ ...keys.moduleEvent(other, 'evt_late.000'), event: '{}', ttl: nowSeconds() + 60 }])
  await deliver(other)
  expect(await waitingFor(other)).toBe(0)
})
