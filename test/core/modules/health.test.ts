import { afterEach, beforeEach, expect, test } from 'vitest'
import { Readiness } from '@platform/contract/health'
import { iso, now } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { removeAll } from '@platform/core/db/transact'
import { read } from '@platform/core/modules/module'
import { ready } from '@platform/core/platform/health'
import { type ModuleHealthRecord, type StoredCheck } from '@platform/core/modules/record'
import { bootstrapPlatform } from '../../support/fixtures.ts'
import { storedCheck, newModuleId, putHealth, putModule, releaseFor } from '../support/modules.ts'
import { onStoreCall } from '../../support/store-calls.ts'
import { advanceClock, minute } from '../support/notifications.ts'
import { measureUsage } from '../support/usage.ts'

await bootstrapPlatform()
const clear = () => removeAll(keys.modules())
beforeEach(clear)
afterEach(clear)

/** A module that serves, with what its last probe has found. */
async function probed(
  checks: StoredCheck[],
  health: ModuleHealthRecord['health'] = 'Healthy',
  state?: 'Failed' | 'Uninstalling',
) {
  const id = newModuleId()
  await putModule(releaseFor(id), state && { state })
  await putHealth(id, health, checks)
  return id
}

test('a check of a module stands beside those of the platform, with the module’s name', async () => {
  const id = await probed([storedCheck('hello-module')])
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

const ok = { ready: true, status: 'ok' }
const down = { ready: false, status: 'unavailable' }

test.each([
  ['critical', 'Unhealthy', { ...down, aggregate: 'Unhealthy' }],
  ['critical', 'Degraded', { ...ok, aggregate: 'Degraded' }],
  ['degradable', 'Unhealthy', { ...ok, aggregate: 'Degraded' }],
  ['degradable', 'Degraded', { ...ok, aggregate: 'Degraded' }],
  ['informational', 'Unhealthy', { ...ok, aggregate: 'Healthy' }],
  ['', 'Unhealthy', { ...ok, aggregate: 'Degraded' }],
  ['informational critical', 'Unhealthy', { ...down, aggregate: 'Unhealthy' }],
  ['informational critical', 'Degraded', { ...ok, aggregate: 'Degraded' }],
  ['informational degradable', 'Unhealthy', { ...ok, aggregate: 'Degraded' }],
] as const)('a module’s check tagged %j that is %s makes the platform %o', async (tags, status, expected) => {
  const named = tags.split(' ').filter(Boolean) as StoredCheck['tags']
  await probed([storedCheck('good', { tags: ['critical'] }), storedCheck('bad', { status, tags: named })])
  const { ready: isReady, body } = await ready()
  expect({ ready: isReady, status: body.status, aggregate: body.aggregate }).toEqual(expected)
})

test('a result that is three ticks old says so, and counts as degraded where it was good', async () => {
  const checkedAtMs = now()
  await probed([
    storedCheck('good', { tags: ['critical'], checkedAtMs }),
    storedCheck('bad', { tags: ['informational'], status: 'Unhealthy', description: 'x'.repeat(500), checkedAtMs }),
  ])
  advanceClock(3 * minute - 1000)
  expect((await ready()).body.aggregate).toBe('Healthy')
  advanceClock(2000)
  const { body } = await ready()
  const [, good, bad] = body.checks
  expect(body.aggregate).toBe('Degraded')
  expect(good).toMatchObject({ status: 'Degraded', description: `Not checked since ${iso(checkedAtMs)}. Fine.` })
  expect(bad).toMatchObject({
    status: 'Unhealthy',
    description: expect.stringMatching(/^Not checked since .*x{400,}$/),
  })
  expect(Readiness.parse(body)).toEqual(body)
})

test('a module that is on its way out does not count; one that has failed does', async () => {
  const bad = storedCheck('bad', { status: 'Unhealthy', tags: ['critical'] })
  await probed([bad], 'Unhealthy', 'Uninstalling')
  expect(await ready()).toMatchObject({ ready: true, body: { checks: [{ name: 'database' }] } })
  await probed([bad], 'Unhealthy', 'Failed')
  expect(await ready()).toMatchObject({ ready: false, body: { status: 'unavailable' } })
})

test('of a module that has failed nothing is well, whatever its last probe has found, and however long ago', async () => {
  const id = await probed([storedCheck('good', { tags: ['critical'] })])
  const error = { code: 'PLAT-MOD-5008', message: 'It crashed: secret.', atMs: now() } as const
  await putModule(releaseFor(id), { state: 'Failed', error })
  for (const passed of [0, 10 * minute]) {
    advanceClock(passed)
    const { ready: isReady, body } = await ready()
    expect([isReady, body.aggregate]).toEqual([false, 'Unhealthy'])
    expect(body.checks).toMatchObject([
      { name: 'database' },
      { name: 'good', status: 'Unhealthy', description: expect.stringMatching(/It has failed: PLAT-MOD-5008\.$/) },
    ])
    expect((await read(id)).checks).toMatchObject([{ name: 'good', status: 'Unhealthy' }])
  }
})

test('a module that has failed and declares no checks counts as one check that may be missed; one that never ran does not', async () => {
  const error = { code: 'PLAT-MOD-5008', message: 'It crashed.', atMs: now() } as const
  await putModule(releaseFor(newModuleId()), { state: 'Failed', error })
  expect((await ready()).body).toMatchObject({ aggregate: 'Healthy', checks: [{ name: 'database' }] })
  const id = newModuleId()
  await putModule(releaseFor(id), { state: 'Failed', error })
  await putHealth(id, 'Healthy')
  const { ready: isReady, body } = await ready()
  expect([isReady, body.aggregate]).toEqual([true, 'Degraded'])
  expect(body.checks[1]).toMatchObject({
    name: 'health',
    source: `module:${id}`,
    status: 'Unhealthy',
    tags: ['degradable'],
  })
})

test('modules that cannot be read do not hide that the store answers otherwise', async () => {
  await probed([storedCheck('bad', { status: 'Unhealthy', tags: ['critical'] })])
  using _ = onStoreCall({
    before: async ({ command }) => {
      if (command.startsWith('Query')) throw new Error('The store is away.')
    },
  })
  expect((await ready()).body).toMatchObject({ status: 'ok', checks: [{ name: 'database', status: 'Healthy' }] })
})

test('readiness takes two calls at once', async () => {
  await probed([storedCheck('one')])
  const { usage } = await measureUsage(ready)
  expect([usage.calls.toSorted(), usage.rounds]).toEqual([['GetItem', 'Query'], 1])
})
