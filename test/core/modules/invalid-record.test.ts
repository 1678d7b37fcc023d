// Imported first, because it sets the registry allowlist and the trusted keys, which core reads when it is imported.
import { pick, runningModule, runtime, storedTraces } from '../support/module-platform.ts'
import { expect, test } from 'vitest'
import * as Catalog from '@platform/core/modules/catalog/list'
import * as keys from '@platform/core/db/keys'
import { get, update } from '@platform/core/db/table'
import { ready } from '@platform/core/platform/health'
import * as Module from '@platform/core/modules/module'
import { navigation } from '@platform/core/dashboard/navigation'
import { supervise } from '@platform/worker/modules/supervise'
import { newCaller, bootstrapPlatform } from '../../support/fixtures.ts'

await bootstrapPlatform()

const deploymentsOf = async (id: string) =>
  (await runtime.list()).filter(({ deployment }) => deployment.moduleId === id)

test('skips the invalid record of another release and still shows, checks and serves the other modules', async () => {
  const [{ id }, { id: invalidId }] = [await runningModule(), await runningModule()]
  await update(keys.module(invalidId), { set: { state: 'Sleeping' } })
  await supervise(pick)
  expect((await storedTraces(id)).health).toMatchObject({ revision: 1 })
  const item = await get(keys.module(invalidId))
  expect(item).toMatchObject({ state: 'Sleeping' })
  expect(await deploymentsOf(invalidId)).toHaveLength(1)
  const caller = await newCaller(undefined, 'Viewer')
  expect((await Module.list()).items.map((module) => module.id)).toEqual([id])
  expect((await navigation(caller)).items.length).toBeGreaterThan(0)
  expect((await ready()).body.checks.map(({ source }) => source)).toContain(`module:${id}`)
  expect((await Catalog.list({})).problems).toEqual([])
})

test('keeps a module whose manifest has an unknown field', async () => {
  const { id } = await runningModule()
  const item = await get(keys.module(id))
  const release = JSON.parse(String(item?.['release']))
  release.manifest.spec.futureField = { a: 1 }
  await update(keys.module(id), { set: { release: JSON.stringify(release) } })
  await supervise(pick)
  expect(await Module.read(id)).toMatchObject({ state: 'Running', health: 'Healthy', name: `Module ${id}` })
})
