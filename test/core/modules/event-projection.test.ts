// Imported first, because it sets the registry allowlist and the trusted keys, which core reads when it is imported.
import { allowEvents, publisher, refreshSubscriptions, subscriber, userCreated } from '../support/module-events.ts'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { moduleEventProjection } from '@platform/core/modules/event-projection'
import { readRoutes, reserveRoutesWrite } from '@platform/core/modules/routes'
import { commit } from '@platform/core/outbox/commit'
import { afterEach, expect, test } from 'vitest'
import { listConsents, setConsent } from '@platform/core/modules/consent'
import { bootstrapPlatform, errorCodeOf, newCaller } from '../../support/fixtures.ts'
import { countStoreCalls } from '../../support/store-calls.ts'
import { receiveMessages } from '../support/messages.ts'
import { newModuleId } from '../support/modules.ts'
import { drainOutbox, readPendingRecords } from '../support/outbox.ts'

await bootstrapPlatform()
afterEach(async () => void (await receiveMessages(config.PLAT_QUEUE_MODULES)))

const eventsFor = async (id: string) => (await query(keys.moduleEvents(id))).items
async function commitEvents(...events: any[]) {
  const organisationId = newId('org')
  await commit({ kind: 'system', organisationId }, { writes: [], events })
  const records = await readPendingRecords(organisationId)
  return { organisationId, records, project: async () => moduleEventProjection.beforeCommit?.(organisationId, records) }
}

test('stores an event once, even if its projection is repeated', async () => {
  const { id } = await subscriber()
  const { organisationId, project } = await commitEvents(userCreated(), userCreated())
  await allowEvents(organisationId, id, ['platform.user.created'])
  await project()
  await project()
  await drainOutbox(organisationId)
  expect(await eventsFor(id)).toHaveLength(2)
})

test('reads subscriptions and decisions at most once in two seconds, and not at all without events', async () => {
  await subscriber()
  const { organisationId, records, project } = await commitEvents(userCreated())
  await refreshSubscriptions()
  expect(await countStoreCalls(project)).toBe(2)
  for (let round = 0; round < 20; round++) expect(await countStoreCalls(project)).toBe(0)
  const withoutEvents = records.map((record) => Object.assign({}, record, { events: [] }))
  await refreshSubscriptions()
  const cost = await countStoreCalls(async () => moduleEventProjection.beforeCommit?.(organisationId, withoutEvents))
  expect(cost).toBe(0)
})

test.each([
  [['platform.user.created'], ['platform.user.created']],
  [['platform.user.*'], ['platform.user.created', 'platform.user.deleted']],
  [['platform.*'], ['platform.cluster.deleted', 'platform.user.created', 'platform.user.deleted']],
  [['module.other.*'], ['module.other.done']],
  [['module.*'], ['module.other.done']],
  [['platform.use.*', 'user.created', 'platform.user'], []],
])('matches the subscription %j with %j', async (subscriptions, types) => {
  const id = newModuleId()
  const deployment = { runtime: 'process', isolation: '', id, moduleId: id, version: '1.0.0', digest: '', handle: '' }
  const reservation = { apiBasePath: `/api/${id}`, publisher, deployment, subscriptions } as any
  await transact([reserveRoutesWrite(await readRoutes(), id, reservation)])
  // The clock is reset after each test. One call may return it to when an earlier test filled the cache; two pass it.
  await refreshSubscriptions()
  await refreshSubscriptions()
  const names = ['user.created', 'user.deleted', 'cluster.deleted', 'module.other.done', `module.${id}.done`]
  const { organisationId } = await commitEvents(...names.map((name) => Object.assign(userCreated(), { name })))
  await allowEvents(organisationId, id, ['platform.*', 'module.*'])
  await drainOutbox(organisationId)
  const storedTypes = (await eventsFor(id)).map(({ event }) => String(JSON.parse(String(event)).type))
  expect(storedTypes.toSorted()).toEqual(types)
})

test.each([
  ['no decision', undefined, {}, 0],
  ['its administrator allowed', ['platform.user.created'], {}, 1],
  ['the area allowed', ['platform.user.*'], {}, 1],
  ['other events allowed', ['platform.user.deleted'], {}, 0],
  ['a disabled module', ['platform.user.created'], { enabled: false }, 0],
  ['a decision about another publisher', ['platform.user.created'], { publisher: 'key other' }, 0],
  ['a decision about a repository', ['platform.user.created'], { publisher: 'repository tests' }, 0],
  ['a decision about no publisher', ['platform.user.created'], { publisher: undefined }, 0],
])('an organisation with %s sends %j: %j', async (_, events, consent, count) => {
  const { id, caller } = await subscriber()
  await allowEvents(caller.organisationId, id, ['platform.user.created'])
  const { organisationId } = await commitEvents(userCreated())
  if (events !== undefined) await allowEvents(organisationId, id, events, consent)
  await drainOutbox(organisationId)
  expect(await eventsFor(id)).toHaveLength(count)
})

test('an administrator allows declared events of a module, and stops them', async () => {
  const { id } = await subscriber(['platform.user.created', 'platform.user.deleted'])
  const admin = await newCaller(undefined, 'OrgAdmin')
  const declaredEvents = ['platform.user.created', 'platform.user.deleted']
  const module = { id, name: `Module ${id}`, declaredEvents }
  const readConsent = async () => (await listConsents(admin)).items.find((module) => module.id === id)
  expect(await readConsent()).toEqual({ ...module, enabled: false, events: [] })
  expect(await setConsent(admin, id, { enabled: true })).toEqual({ ...module, enabled: true, events: declaredEvents })
  const events = ['platform.user.deleted']
  expect(await setConsent(admin, id, { enabled: true, events })).toEqual({ ...module, enabled: true, events })
  expect(await readConsent()).toEqual({ ...module, enabled: true, events })
  for (const unknownEvent of ['platform.user.*', 'platform.job.failed'])
    expect(await errorCodeOf(setConsent(admin, id, { enabled: true, events: [unknownEvent] }))).toBe(
      'validation_failed',
    )
  expect(await setConsent(admin, id, { enabled: false })).toEqual({ ...module, enabled: false, events: [] })
  expect(await errorCodeOf(setConsent(admin, 'unknown', { enabled: true }))).toBe('module_not_found')
  expect(await errorCodeOf(setConsent(await newCaller(undefined, 'Viewer'), id, { enabled: true }))).toBe('forbidden')
})

test('a decision about a module that is absent or of another publisher can be seen and withdrawn', async () => {
  const { id } = await subscriber()
  const admin = await newCaller(undefined, 'OrgAdmin')
  const readConsent = async (moduleId: string) =>
    (await listConsents(admin)).items.find((module) => module.id === moduleId)
  await allowEvents(admin.organisationId, id, ['platform.user.created'], { publisher: 'key other' })
  expect(await readConsent(id)).toMatchObject({ enabled: false, events: [] })
  const [absentId, events] = [newModuleId(), ['platform.user.created']]
  await allowEvents(admin.organisationId, absentId, events)
  expect(await readConsent(absentId)).toEqual({
    id: absentId,
    name: absentId,
    enabled: true,
    events,
    declaredEvents: [],
  })
  expect(await errorCodeOf(setConsent(admin, absentId, { enabled: true }))).toBe('module_not_found')
  expect(await setConsent(admin, absentId, { enabled: false })).toMatchObject({ enabled: false, events: [] })
  expect(await readConsent(absentId)).toBeUndefined()
})
