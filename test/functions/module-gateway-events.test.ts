import { expect, test, vi } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { query, upsert } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { serialise } from '@platform/core/modules/record'
import { parseRecord } from '@platform/core/outbox/record'
import { runInstance } from '../support/hostile-module.ts'
import { manifestFor } from '../support/module-manifest.ts'
import { countStoreCalls, beforeCommand } from '../support/store-calls.ts'
import { answering, get } from './module-traffic.ts'

await vi.hoisted(() => {
  // Requests go past the host; nothing is deployed here.
  process.env['PLAT_MODULE_HOST_URL'] = 'http://127.0.0.1:9'
  return import('../support/without-rate-limits.ts')
})

const publishing = (...events: unknown[]) =>
  answering({ 'x-platform-published': Buffer.from(JSON.stringify(events)).toString('base64url') })

/** Stores a module's row; answers the organisation that its events belong to. */
async function storeRow(moduleId: string): Promise<string> {
  const organisationId = newId('org')
  const release = {
    moduleId,
    version: '1.0.0',
    repository: 'r.example/m',
    digest: 'x',
    manifest: manifestFor(moduleId),
  }
  const row = { id: moduleId, organisationId, state: 'Running', updatedAtMs: 0 }
  const set = { ...row, release: serialise({ ...release, isVerified: true }) }
  await transact([upsert(keys.module(moduleId), { set })])
  return organisationId
}

const recordedIn = async (organisationId: string) => {
  const { items } = await query({ pk: keys.outbox(organisationId, '').pk })
  return items.flatMap((item) => parseRecord(item).events)
}

test('what a module publishes with an answer is told in its organisation’s name, and nothing else that it says', async () => {
  await using module = await runInstance()
  const { moduleId, api } = module
  const organisationId = await storeRow(moduleId)
  const own = { type: `module.${moduleId}.done`, subject: 'thing', data: { count: 1 } }
  const foreign = { ...own, type: 'module.other.done' }
  module.respondWith(publishing(own, foreign, { ...own, type: 'platform.user.deleted' }))
  const answer = await get(api)
  expect([answer.status, answer.headers['x-platform-published']]).toEqual([200, undefined])
  expect(await recordedIn(organisationId)).toMatchObject([{ name: own.type, subject: 'thing', data: { count: 1 } }])
  for (const broken of ['not base64 of JSON', 'e30', '']) {
    module.respondWith(answering({ 'x-platform-published': broken }))
    expect((await get(api)).status).toBe(200)
  }
  expect(await recordedIn(organisationId)).toHaveLength(1)
  module.respondWith(publishing(own))
  expect(await countStoreCalls(() => get(api))).toBe(2)
})

test('events that cannot be kept cost their caller nothing', async () => {
  await using module = await runInstance()
  const event = { type: `module.${module.moduleId}.done`, data: {} }
  module.respondWith(publishing(event))
  // Of a module that is just being removed.
  expect((await get(module.api)).status).toBe(200)
  const organisationId = await storeRow(module.moduleId)
  const hasFailed = beforeCommand(/TransactWrite/, () => Promise.reject(new Error('The store is gone.')))
  expect([(await get(module.api)).status, hasFailed()]).toEqual([200, true])
  expect(await recordedIn(organisationId)).toEqual([])
})
