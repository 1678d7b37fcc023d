// First: it sets what the platform may reach, which core reads when it is imported.
import { refreshSubscriptions, subscriber, userCreated } from '../support/module-events.ts'
import { afterEach, expect, test } from 'vitest'
import { commit } from '@platform/core/outbox/commit'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { moduleEventProjection } from '@platform/core/modules/event-projection'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import { countStoreCalls } from '../../support/store-calls.ts'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { drainOutbox, pendingRecords } from '../support/outbox.ts'
import { receiveMessages } from '../support/messages.ts'
import { newModuleId } from '../support/modules.ts'

await bootstrapPlatform()

const waitingFor = async (id: string) => (await query(keys.moduleEvents(id))).items.length
const messages = () => receiveMessages(config.PLAT_QUEUE_MODULES)

afterEach(async () => void (await messages()))

test('what waits for a module is there once, however often its records are prepared', async () => {
  const { id } = await subscriber()
  const organisationId = newId('org')
  await commit({ kind: 'system', organisationId }, { writes: [], events: [userCreated(), userCreated()] })
  const records = await pendingRecords(organisationId)
  await moduleEventProjection.beforeCommit?.(organisationId, records)
  await moduleEventProjection.beforeCommit?.(organisationId, records)
  await drainOutbox(organisationId)
  expect(await waitingFor(id)).toBe(2)
})

test('where no module has subscribed telling of events costs one small read in two seconds, and else no call', async () => {
  const organisationId = newId('org')
  await commit({ kind: 'system', organisationId }, { writes: [], events: [userCreated()] })
  const records = await pendingRecords(organisationId)
  const prepare = async () => moduleEventProjection.beforeCommit?.(organisationId, records)
  await refreshSubscriptions()
  expect(await countStoreCalls(prepare)).toBe(1)
  for (let round = 0; round < 20; round++) expect(await countStoreCalls(prepare)).toBe(0)
  const quiet = records.map((record) => Object.assign({}, record, { events: [] }))
  await refreshSubscriptions()
  expect(await countStoreCalls(async () => moduleEventProjection.beforeCommit?.(organisationId, quiet))).toBe(0)
})

test.each([
  [['platform.user.created'], ['platform.user.created']],
  [['platform.user.*'], ['platform.user.created', 'platform.user.deleted']],
  [['platform.*'], ['platform.cluster.deleted', 'platform.user.created', 'platform.user.deleted']],
  [['module.other.*'], ['module.other.done']],
  [['module.*'], ['module.other.done']],
  [['platform.use.*', 'user.created', 'platform.user'], []],
])('a subscription to %j hears of %j', async (subscriptions, types) => {
  const id = newModuleId()
  const deployment = { runtime: 'process', isolation: '', id, moduleId: id, version: '1.0.0', digest: '', handle: '' }
  const claim = { apiBasePath: `/api/${id}`, deployment, subscriptions } as const
  await transact([reserveRoutesWrite(await readRoutes(), id, claim as any)])
  await refreshSubscriptions()
  const organisationId = newId('org')
  const names = ['user.created', 'user.deleted', 'cluster.deleted', 'module.other.done', `module.${id}.done`]
  const events = names.map((name): any => Object.assign(userCreated(), { name }))
  await commit({ kind: 'system', organisationId }, { writes: [], events })
  await drainOutbox(organisationId)
  const { items } = await query(keys.moduleEvents(id))
  const found = items.map(({ event }) => String(JSON.parse(String(event)).type))
  expect(new Set(found)).toEqual(new Set(types))
  expect(found).toHaveLength(types.length)
})
