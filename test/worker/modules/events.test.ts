// Imported first, because it sets the registry allowlist and the trusted keys, which core reads when it is imported.
import {
  requestUninstall,
  setBehaviour,
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
import { batchPut, query, update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { deliverPending } from '@platform/worker/modules/deliver-events'
import { findModule } from '@platform/worker/modules/records'
import { supervise } from '@platform/worker/modules/supervise'
import { waitFor } from '../../support/wait-for.ts'
import * as Webhook from '@platform/core/webhooks/webhook'
import { beforeCommand } from '../../support/store-calls.ts'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { runModuleOperation } from '../../core/support/module-operations.ts'
import { drainOutbox, readPendingRecords } from '../../core/support/outbox.ts'
import { messagesSentBy, receiveMessages } from '../../core/support/messages.ts'
import { allowEvents, publishUserCreated, subscriber, userCreated } from '../../core/support/module-events.ts'
import { newModuleId } from '../../core/support/modules.ts'
import { advanceClock } from '../../support/clock.ts'
import { deliveriesOf } from '../../core/support/webhooks.ts'

await bootstrapPlatform()
const [secondMs, dayMs] = [1000, 24 * 3_600_000]

interface ModuleMessage {
  moduleId: string
}

const deliver = (id: string) => deliverPending(id, pick)
const subjectsOf = async (id: string) => (await readActorLog(id)).events.map(({ subject }) => subject)
const countPending = async (id: string) => (await query(keys.moduleEvents(id))).items.length
const messagesAbout = async (id: string) =>
  (await receiveMessages(config.PLAT_QUEUE_MODULES)).filter((message) => (message as ModuleMessage).moduleId === id)

afterEach(async () => void (await receiveMessages(config.PLAT_QUEUE_MODULES)))

test('delivers subscribed events of all organisations in order, once, and no others', async () => {
  const { caller, id } = await subscriber()
  const [orgId, otherOrgId] = [newId('org'), newId('org')]
  const firstEvents = await publishUserCreated(orgId, 2)
  const [otherEvent] = await publishUserCreated(otherOrgId)
  await commit(caller, { writes: [], events: [{ ...userCreated(), name: 'user.deleted' } as any] })
  await drainOutbox(caller.organisationId)
  expect(await messagesAbout(id)).toContainEqual({ organisationId: orgId, moduleId: id })
  await deliver(id)
  const { events } = await readActorLog(id)
  expect(events).toMatchObject(
    [...firstEvents.map((subject) => [orgId, subject]), [otherOrgId, otherEvent]].map(([organisationId, subject]) => ({
      type: 'platform.user.created',
      organisationId,
      subject,
      id: expect.stringMatching(/^evt_/),
      data: { userId: subject, username: 'ada' },
    })),
  )
  expect(await countPending(id)).toBe(0)
  await deliver(id)
  expect((await readActorLog(id)).events).toHaveLength(3)
})

test('delivers many events in order, once, also with several workers', async () => {
  const { id } = await subscriber()
  const subjects = await publishUserCreated(newId('org'), 60)
  await Promise.all([deliver(id), deliver(id), deliver(id)])
  expect(await subjectsOf(id)).toEqual(subjects)
  expect(await countPending(id)).toBe(0)
})

test('enqueues a message for events that arrive after the last read of a worker', async () => {
  const { caller, id } = await subscriber()
  await publishUserCreated(newId('org'))
  await messagesAbout(id)
  // At the second update, the worker releases its lease.
  const hasPublished = beforeCommand(/^Update/, () => publishUserCreated(newId('org'), 3), 2)
  await deliver(id)
  expect([hasPublished(), await countPending(id)]).toEqual([true, 3])
  expect(await messagesAbout(id)).toContainEqual({ organisationId: caller.organisationId, moduleId: id })
  await deliver(id)
  expect(await subjectsOf(id)).toHaveLength(4)
})

test('redelivers events that a worker could not delete, and the module handles each once', async () => {
  const { id } = await subscriber()
  const subjects = await publishUserCreated(newId('org'), 3)
  vi.stubEnv('PLAT_FAILPOINT', 'module.delivered=throw')
  vi.resetModules()
  // The failpoint is read at import, so the failing worker is a separate import.
  const crashingWorker = await import('@platform/worker/modules/deliver-events')
  vi.unstubAllEnvs()
  await expect(crashingWorker.deliverPending(id, pick)).rejects.toThrow('Failpoint')
  expect(await countPending(id)).toBe(3)
  await deliver(id)
  expect(await countPending(id)).toBe(3)
  advanceClock(61 * secondMs)
  await deliver(id)
  expect([await countPending(id), await subjectsOf(id)]).toEqual([0, subjects])
})

test('drops an event after five failed deliveries with increasing delays', async () => {
  const { id } = await subscriber()
  const subjects = await publishUserCreated(newId('org'), 5)
  const [first, badSubject = '', ...rest] = subjects
  await setBehaviour(id, { events: { subject: badSubject, how: 'throw' } })
  await deliver(id)
  expect(await subjectsOf(id)).toEqual([first, ...rest])
  expect(await countPending(id)).toBe(1)
  let tries = 1
  for (let waitedMs = 0; (await countPending(id)) > 0; waitedMs += 5 * secondMs) {
    const [recordBefore] = (await query(keys.moduleEvents(id))).items
    await deliver(id)
    const [recordAfter] = (await query(keys.moduleEvents(id))).items
    if (recordAfter?.['tries'] !== recordBefore?.['tries']) tries++
    expect(waitedMs).toBeLessThan(120 * secondMs)
    advanceClock(5 * secondMs)
  }
  expect(tries).toBe(5)
  const [next] = await publishUserCreated(newId('org'))
  await deliver(id)
  expect(await subjectsOf(id)).toEqual([first, ...rest, next])
})

test('drops an event that crashes the module before the module fails, and delivers the others', async () => {
  const { id } = await subscriber()
  const subjects = await publishUserCreated(newId('org'), 3)
  const [, badSubject = '', lastSubject] = subjects
  await setBehaviour(id, { events: { subject: badSubject, how: 'exit' } })
  const waitForResponse = (request: () => Promise<unknown>) =>
    waitFor('the module responds', async () =>
      request().then(
        () => true,
        () => false,
      ),
    )
  // A restarted module has its default behaviour.
  while ((await countPending(id)) > 0) {
    await waitForResponse(() => setBehaviour(id, { events: { subject: badSubject, how: 'exit' } }))
    await deliver(id)
    advanceClock(secondMs)
  }
  await waitForResponse(() => readActorLog(id))
  const [status] = await runtime.list()
  expect(status).toMatchObject({ state: 'running' })
  expect(status?.crashes).toBeLessThan(5)
  const [next] = await publishUserCreated(newId('org'))
  advanceClock(30 * secondMs)
  await deliver(id)
  expect(await subjectsOf(id)).toEqual([lastSubject, next])
})

test('keeps events for a module that does not run, without counting attempts', async () => {
  const { id } = await subscriber()
  const [status] = await runtime.list()
  await runtime.remove(status!.deployment, 0)
  const subjects = await publishUserCreated(newId('org'), 3)
  for (let minute = 0; minute < 8; minute++) {
    await deliver(id)
    advanceClock(60 * secondMs)
  }
  const { items } = await query(keys.moduleEvents(id))
  expect(items.map(({ tries }) => tries)).toEqual([undefined, undefined, undefined])
  await supervise(pick)
  // The maximum delay between two attempts.
  advanceClock(900 * secondMs)
  await deliver(id)
  expect(await subjectsOf(id)).toEqual(subjects)
})

test('sends no further messages during the delay after a failed delivery', async () => {
  const { id } = await subscriber()
  const [status] = await runtime.list()
  await runtime.remove(status!.deployment, 0)
  await publishUserCreated(newId('org'))
  expect(await messagesSentBy(config.PLAT_QUEUE_MODULES, () => deliver(id))).toHaveLength(1)
  const redeliver = async () => {
    for (let count = 0; count < 5; count++) await deliver(id)
  }
  expect(await messagesSentBy(config.PLAT_QUEUE_MODULES, redeliver)).toEqual([])
  expect(await countPending(id)).toBe(1)
})

test('drops events after one day', async () => {
  const { id } = await subscriber()
  await publishUserCreated(newId('org'), 3)
  advanceClock(dayMs + secondMs)
  const [subject] = await publishUserCreated(newId('org'))
  await deliver(id)
  expect(await subjectsOf(id)).toEqual([subject])
  expect(await countPending(id)).toBe(0)
})

test('drops events that were queued for another publisher, also while an upgrade ends', async () => {
  const { id } = await subscriber()
  const switchTo = async (verifiedBy: string) => {
    const release = { ...(await findModule(id))?.release, verifiedBy }
    await update(keys.module(id), { set: { release: JSON.stringify(release) } })
  }
  await publishUserCreated(newId('org'), 2)
  await switchTo('other')
  await deliver(id)
  expect([await countPending(id), await subjectsOf(id)]).toEqual([0, []])
  const keptEvents = await publishUserCreated(newId('org'))
  const hasSwitched = beforeCommand(/^Query/, () => switchTo('tests'))
  await deliver(id)
  expect([hasSwitched(), await countPending(id)]).toEqual([true, 1])
  await deliver(id)
  expect([await countPending(id), await subjectsOf(id)]).toEqual([0, keptEvents])
})

test('supervision enqueues a message for pending events', async () => {
  const { id, caller } = await subscriber()
  await publishUserCreated(newId('org'))
  await messagesAbout(id)
  await supervise(pick)
  expect(await messagesAbout(id)).toEqual([{ organisationId: caller.organisationId, moduleId: id }])
})

test('forwards published events to webhooks and other modules under the name of the module', async () => {
  const { caller, id } = await subscriber()
  const { id: listener } = await subscriber([`module.${id}.heard`])
  await allowEvents(caller.organisationId, listener, [`module.${id}.heard`])
  const webhook = await Webhook.create(caller, { url: 'https://example.com/hook', events: ['module.*'] })
  await drainOutbox(caller.organisationId)
  const [subject = ''] = await publishUserCreated(newId('org'))
  await deliver(id)
  const records = await readPendingRecords(caller.organisationId)
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
  expect(await subjectsOf(id)).toHaveLength(1)
})

test('deletes the pending events of an uninstalled module and of an unknown one', async () => {
  const { caller, id } = await subscriber()
  await publishUserCreated(newId('org'))
  await deliver(id)
  await publishUserCreated(newId('org'), 3)
  await runModuleOperation(await requestUninstall(caller, id), pick)
  expect(await storedTraces(id)).toEqual(noTraces)
  const otherId = newModuleId()
  await batchPut([{ ...keys.moduleEvent(otherId, 'evt_late.000'), event: '{}', ttl: nowSeconds() + 60 }])
  await deliver(otherId)
  expect(await countPending(otherId)).toBe(0)
})
