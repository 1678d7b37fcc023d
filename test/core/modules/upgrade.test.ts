import * as keys from '@platform/core/db/keys'
import { update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { installFromCatalog, installFromImage } from '@platform/core/modules/install'
import { installPlan } from '@platform/core/modules/plans'
import { readRoutes } from '@platform/core/modules/routes'
import { findOperation } from '@platform/core/operations/operation'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { bootstrapPlatform, errorCodeOf, expectError } from '../../support/fixtures.ts'
import { beforeCommand } from '../../support/store-calls.ts'
import { clearModules, countInstallJobs, moduleRecord, newPlatformAdmin, offerReleases } from '../support/installs.ts'
import { catalogRelease, newModuleId, putCatalog, putModule, releaseFor } from '../support/modules.ts'
import { pendingRecords } from '../support/outbox.ts'

const registry = await vi.hoisted(async () => (await import('../../support/module-registry.ts')).startModuleFixtures())
afterAll(registry.close)
await bootstrapPlatform()
beforeEach(clearModules)

const running = (id: string, version = '1.0.0') => putModule(releaseFor(id, { version }))
/** An administrator, and a running module with these releases in the catalog. */
async function installed(version: string, ...offers: string[]) {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  await running(id, version)
  await offerReleases(registry, id, ...offers)
  const upgrade = (target?: string) => installFromCatalog(caller, id, { version: target })
  const upgradeToImage = (tag: string) =>
    installFromImage(caller, { imageRef: `${registry.host}/modules/${id}:${tag}` })
  return { caller, id, upgrade, upgradeToImage }
}

test('keeps the running release and its route until the new one is published', async () => {
  const { caller, id, upgrade } = await installed('1.0.0', '1.1.0')
  const before = await readRoutes()
  const { jobId } = await upgrade()
  expect(await moduleRecord(id)).toMatchObject({ state: 'Upgrading', jobId, release: { version: '1.0.0' } })
  expect(await readRoutes()).toEqual(before)
  const operation = await findOperation({ organisationId: caller.organisationId, jobId })
  const plan = { release: { version: '1.1.0' }, previousVersion: '1.0.0' }
  expect(operation && installPlan(operation)).toMatchObject(plan)
  const [record] = await pendingRecords(caller.organisationId)
  expect(record?.events[0]?.data).toMatchObject({ previousVersion: '1.0.0', version: '1.1.0' })
})

test('rejects the installed version, from the catalog and as an image', async () => {
  const { upgrade, upgradeToImage } = await installed('1.0.0', '1.0.0')
  await expectError(upgrade(), 'module_already_installed')
  await expectError(upgrade('1.0.0'), 'module_already_installed')
  await expectError(upgradeToImage('1.0.0'), 'module_already_installed')
})

test('downgrades only to a requested version or image', async () => {
  const { upgrade } = await installed('2.0.0', '1.0.0')
  await expectError(upgrade(), 'module_already_installed')
  expect(await upgrade('1.0.0')).toMatchObject({ version: '1.0.0' })
  const { upgradeToImage } = await installed('2.0.0', '1.0.0')
  expect(await upgradeToImage('1.0.0')).toMatchObject({ version: '1.0.0' })
})

test('does not downgrade after a concurrent upgrade', async () => {
  const { id, upgrade } = await installed('1.0.0', '1.1.0')
  beforeCommand(/^TransactWrite/, () => running(id, '1.2.0'))
  await expectError(upgrade(), 'module_already_installed')
  expect(await moduleRecord(id)).toMatchObject({ state: 'Running', release: { version: '1.2.0' } })
})

test('reinstalls the version of a failed module', async () => {
  const { id, upgrade } = await installed('1.0.0', '1.0.0')
  await putModule(releaseFor(id), { state: 'Failed' })
  expect(await upgrade()).toMatchObject({ version: '1.0.0' })
  expect(await moduleRecord(id)).toMatchObject({ state: 'Installing', installedAtMs: expect.any(Number) })
})

test('rejects an upgrade of a module that is not in the catalog', async () => {
  const id = newModuleId()
  await running(id)
  await expectError(installFromCatalog(await newPlatformAdmin(), id, {}), 'version_not_available')
})

test.each(['Installing', 'Upgrading', 'Uninstalling'] as const)(
  'rejects an operation while a module is %s',
  async (state) => {
    const { caller, id, upgrade, upgradeToImage } = await installed('1.0.0', '2.0.0')
    await putModule(releaseFor(id), { state, jobId: newId('job') })
    await expectError(upgradeToImage('2.0.0'), 'module_operation_in_progress')
    // Rejected before any registry request: this image does not exist.
    await putCatalog({ [`${registry.host}/modules/${id}`]: [catalogRelease(id, '3.0.0')] })
    await expectError(upgrade(), 'module_operation_in_progress')
    expect(await countInstallJobs(caller)).toBe(0)
  },
)

test('detects an operation and a failure between read and write', async () => {
  const { id, upgrade } = await installed('1.0.0', '2.0.0')
  const isLocked = beforeCommand(/TransactWrite/, () => update(keys.module(id), { set: { jobId: newId('job') } }))
  await expectError(upgrade(), 'module_operation_in_progress')
  await running(id)
  const isFailed = beforeCommand(/TransactWrite/, () => putModule(releaseFor(id), { state: 'Failed' }))
  await upgrade()
  expect(await moduleRecord(id)).toMatchObject({ state: 'Installing' })
  expect([isLocked(), isFailed()]).toEqual([true, true])
})

test('accepts one of several concurrent upgrades', async () => {
  const { caller, upgrade } = await installed('1.0.0', '2.0.0', '3.0.0')
  const outcomes = await Promise.all(['2.0.0', '3.0.0', '2.0.0'].map((version) => errorCodeOf(upgrade(version))))
  expect(outcomes.filter((outcome) => outcome === 'no error')).toHaveLength(1)
  expect(await countInstallJobs(caller)).toBe(1)
})
