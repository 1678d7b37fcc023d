import { expect, test } from 'vitest'
import { Module as ModuleSchema } from '@platform/contract/module'
import { iso, now } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import * as Module from '@platform/core/modules/module'
import { callsOf } from '../../support/store-calls.ts'
import { refusalOf } from '../../support/world.ts'
import { check, newModuleId, putHealth, putModule, releaseFor } from '../support/modules.ts'
import { later, minute } from '../support/told.ts'

test('an installed module tells what it is, how it is, and what keeps it apart', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id), { warnings: ['The slots differ.'] })
  await putHealth(id, 'Degraded', [check('one', { status: 'Degraded', tags: ['degradable'] })])
  const module = await Module.read(id)
  expect(module).toEqual({
    id,
    name: id,
    description: 'A module under test.',
    version: '1.0.0',
    state: 'Running',
    health: 'Degraded',
    checks: [
      {
        name: 'one',
        status: 'Degraded',
        tags: ['degradable'],
        description: 'Fine.',
        durationMs: 1,
        checkedAt: expect.any(String),
      },
    ],
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
  expect((await Module.list()).items).toContainEqual(module)
})

test('a module that is being installed has no health yet and names its job', async () => {
  const [id, jobId] = [newModuleId(), newId('job')]
  await putModule(releaseFor(id), { state: 'Installing', jobId })
  await putHealth(id, 'Healthy')
  const module = await Module.read(id)
  expect(module).toMatchObject({ state: 'Installing', health: 'Unknown', jobId })
  expect('installedAt' in module || 'isolation' in module).toBe(false)
})

test('a module that has failed is unhealthy, and says with which error', async () => {
  const id = newModuleId()
  const error = { code: 'PLAT-MOD-5008' as const, message: 'It crashed five times.', atMs: now() }
  await putModule(releaseFor(id, { isVerified: false }), { state: 'Failed', error })
  await putHealth(id, 'Healthy', [check('one')])
  expect(await Module.read(id)).toMatchObject({
    state: 'Failed',
    health: 'Unhealthy',
    verified: false,
    lastError: { code: 'PLAT-MOD-5008', message: 'It crashed five times.', at: iso(error.atMs) },
  })
})

test('the health of a module that nobody has looked at for three ticks is unknown', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id))
  expect(await Module.read(id)).toMatchObject({ health: 'Unknown', checks: [] })
  await putHealth(id, 'Healthy', [check('one'), check('two')])
  later(3 * minute - 1000)
  expect(await Module.read(id)).toMatchObject({ health: 'Healthy' })
  later(2000)
  expect(await Module.read(id)).toMatchObject({ health: 'Unknown', checks: [{ status: 'Healthy' }, {}] })
})

test('modules are listed by id', async () => {
  const ids = [newModuleId(), newModuleId(), newModuleId()]
  for (const id of ids) await putModule(releaseFor(id))
  const listed = (await Module.list()).items.map(({ id }) => id)
  expect(listed).toEqual(listed.toSorted())
  expect(listed).toEqual(expect.arrayContaining(ids))
})

test.each(['', 'x', 'MODULE#x', 'Hello', '#', 'a'.repeat(200), '\u{ffff}'])('there is no module %j', async (id) => {
  expect(await refusalOf(Module.read(id))).toBe('module_not_found')
})

test('a list and a module take one call each', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id))
  expect(await callsOf(() => Module.list())).toBe(1)
  expect(await callsOf(() => Module.read(id))).toBe(1)
  expect(await callsOf(() => Module.read('Not an id').catch(() => undefined))).toBe(0)
})
