import { Readiness } from '@platform/contract/health'
import { Module as ModuleSchema } from '@platform/contract/module'
import { iso, now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Module from '@platform/core/modules/module'
import { type ModuleHealthRecord, type StoredCheck } from '@platform/core/modules/record'
import { ready } from '@platform/core/platform/health'
import { beforeEach, expect, test } from 'vitest'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { newModuleId, putHealth, putModule, releaseFor, storedCheck } from '../support/modules.ts'
import { advanceClock } from '../../support/clock.ts'
import { minute } from '../support/notifications.ts'

await bootstrapPlatform()
beforeEach(() => removeAll(keys.modules()))

/** Stores a module with the result of its last health check. */
async function checkedModule(
  checks: StoredCheck[],
  health: ModuleHealthRecord['health'] = 'Healthy',
  state?: 'Failed' | 'Uninstalling',
) {
  const id = newModuleId()
  await putModule(releaseFor(id), state && { state })
  await putHealth(id, health, checks)
  return id
}
const moduleError = { code: 'PLAT-MOD-5008', message: 'It crashed: secret.', atMs: now() } as const

test('shows an installed module with its checks', async () => {
  const [id, other] = [newModuleId(), newModuleId()]
  await putModule(releaseFor(other))
  await putModule(releaseFor(id), { warnings: ['The slots differ.'] })
  await putHealth(id, 'Degraded', [storedCheck('one', { status: 'Degraded', tags: ['degradable'] })])
  const module = await Module.read(id)
  const check = { name: 'one', status: 'Degraded', tags: ['degradable'], description: 'Fine.', durationMs: 1 }
  expect(module).toEqual({
    id,
    name: id,
    description: 'A module under test.',
    version: '1.0.0',
    state: 'Running',
    health: 'Degraded',
    checks: [{ ...check, checkedAt: expect.any(String) }],
    verified: true,
    verifiedBy: 'tests',
    image: `registry.example.com/modules/${id}@sha256:${'0'.repeat(64)}`,
    isolation: 'a process of its own',
    apiBasePath: `/api/${id}`,
    warnings: ['The slots differ.'],
    installedAt: expect.any(String),
    updatedAt: expect.any(String),
  })
  expect(ModuleSchema.parse(module)).toEqual(module)
  const { items } = await Module.list()
  expect(items).toContainEqual(module)
  expect(items.map((item) => item.id)).toEqual([id, other].toSorted())
})

test('shows a module being installed with its job and without health', async () => {
  const [id, jobId] = [newModuleId(), newId('job')]
  await putModule(releaseFor(id), { state: 'Installing', jobId })
  await putHealth(id, 'Healthy')
  const module = await Module.read(id)
  expect(module).toMatchObject({ state: 'Installing', health: 'Unknown', jobId })
  expect('installedAt' in module || 'isolation' in module).toBe(false)
})

test('adds checks of modules to the readiness of the platform', async () => {
  const id = await checkedModule([storedCheck('hello-module')])
  const { ready: isReady, body } = await ready()
  expect([isReady, body.status, body.aggregate]).toEqual([true, 'ok', 'Healthy'])
  expect(body.checks).toHaveLength(2)
  expect(body.checks).toContainEqual({
    name: 'hello-module',
    status: 'Healthy',
    tags: ['informational'],
    source: `module:${id}`,
    durationMs: 1,
    checkedAt: expect.any(String),
    description: 'Fine.',
  })
  expect(Readiness.parse(body)).toEqual(body)
})

test.each([
  ['critical', 'Unhealthy', false, 'Unhealthy'],
  ['critical', 'Degraded', true, 'Degraded'],
  ['degradable', 'Unhealthy', true, 'Degraded'],
  ['degradable', 'Degraded', true, 'Degraded'],
  ['informational', 'Unhealthy', true, 'Healthy'],
  ['', 'Unhealthy', true, 'Degraded'],
  ['informational critical', 'Unhealthy', false, 'Unhealthy'],
  ['informational critical', 'Degraded', true, 'Degraded'],
  ['informational degradable', 'Unhealthy', true, 'Degraded'],
] as const)('aggregates a check tagged %j that is %s to ready %s and %s', async (tags, status, isReady, aggregate) => {
  const badTags = tags.split(' ').filter(Boolean) as StoredCheck['tags']
  await checkedModule([storedCheck('good', { tags: ['critical'] }), storedCheck('bad', { status, tags: badTags })])
  const readiness = { ready: isReady, body: { status: isReady ? 'ok' : 'unavailable', aggregate } }
  expect(await ready()).toMatchObject(readiness)
})

test('treats results older than three intervals as outdated', async () => {
  const checkedAtMs = now()
  const bad = { status: 'Unhealthy', description: 'x'.repeat(500) } as const
  const id = await checkedModule([
    storedCheck('good', { tags: ['critical'], checkedAtMs }),
    storedCheck('bad', { tags: ['informational'], ...bad, checkedAtMs }),
  ])
  advanceClock(3 * minute - 1000)
  expect((await ready()).body.aggregate).toBe('Healthy')
  expect(await Module.read(id)).toMatchObject({ health: 'Healthy' })
  advanceClock(2000)
  const { body } = await ready()
  expect(body.aggregate).toBe('Degraded')
  expect(body.checks.slice(1)).toMatchObject([
    { status: 'Degraded', description: `Not checked since ${iso(checkedAtMs)}. Fine.` },
    { status: 'Unhealthy', description: expect.stringMatching(/^Not checked since .*x{400,}$/) },
  ])
  expect(Readiness.parse(body)).toEqual(body)
  expect(await Module.read(id)).toMatchObject({ health: 'Unknown', checks: [{ status: 'Healthy' }, {}] })
})

test('ignores a module being uninstalled but not a failed one', async () => {
  const bad = storedCheck('bad', { status: 'Unhealthy', tags: ['critical'] })
  await checkedModule([bad], 'Unhealthy', 'Uninstalling')
  expect(await ready()).toMatchObject({ ready: true, body: { checks: [{ name: 'database' }] } })
  await checkedModule([bad], 'Unhealthy', 'Failed')
  expect(await ready()).toMatchObject({ ready: false, body: { status: 'unavailable' } })
})

test('reports a failed module as unhealthy, regardless of its last check', async () => {
  const id = await checkedModule([storedCheck('good', { tags: ['critical'] })])
  await putModule(releaseFor(id, { isVerified: false }), { state: 'Failed', error: moduleError })
  for (const elapsedMs of [0, 10 * minute]) {
    advanceClock(elapsedMs)
    const description = expect.stringMatching(/It has failed: PLAT-MOD-5008\.$/)
    const checks = [{ name: 'database' }, { name: 'good', status: 'Unhealthy', description }]
    expect(await ready()).toMatchObject({ ready: false, body: { aggregate: 'Unhealthy', checks } })
  }
  const { code, message, atMs } = moduleError
  expect(await Module.read(id)).toMatchObject({
    state: 'Failed',
    health: 'Unhealthy',
    verified: false,
    checks: [{ name: 'good', status: 'Unhealthy' }],
    lastError: { code, message, at: iso(atMs) },
  })
})

test('reports a failed module without checks as one degradable check once it has run', async () => {
  await putModule(releaseFor(newModuleId()), { state: 'Failed', error: moduleError })
  expect((await ready()).body).toMatchObject({ aggregate: 'Healthy', checks: [{ name: 'database' }] })
  const id = await checkedModule([])
  await putModule(releaseFor(id), { state: 'Failed', error: moduleError })
  const check = { name: 'health', source: `module:${id}`, status: 'Unhealthy', tags: ['degradable'] }
  expect(await ready()).toMatchObject({ ready: true, body: { aggregate: 'Degraded', checks: [{}, check] } })
})

test('reports the database as healthy if modules cannot be read', async () => {
  await checkedModule([storedCheck('bad', { status: 'Unhealthy', tags: ['critical'] })])
  using _ = onStoreCall({
    before: async ({ command }) => {
      if (command.startsWith('Query')) throw new Error('The store is unavailable.')
    },
  })
  expect((await ready()).body).toMatchObject({ status: 'ok', checks: [{ name: 'database', status: 'Healthy' }] })
})
