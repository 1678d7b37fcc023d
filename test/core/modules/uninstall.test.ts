import { UninstallAccepted } from '@platform/contract/module'
import { config } from '@platform/core/config'
import { navigation } from '@platform/core/dashboard/navigation'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { uninstallPlan } from '@platform/core/modules/plans'
import { readRoutes } from '@platform/core/modules/routes'
import { uninstall } from '@platform/core/modules/uninstall'
import { findOperation } from '@platform/core/operations/operation'
import { beforeEach, expect, test } from 'vitest'
import { bootstrapPlatform, errorCodeOf, expectError, newCaller } from '../../support/fixtures.ts'
import { beforeCommand, countStoreCalls } from '../../support/store-calls.ts'
import { clearModules, moduleRecord, newPlatformAdmin } from '../support/installs.ts'
import { receiveMessages } from '../support/messages.ts'
import { catalogRelease, deploymentOf, newModuleId, putCatalog, putModule, releaseFor } from '../support/modules.ts'
import { pendingRecords } from '../support/outbox.ts'

await bootstrapPlatform()
beforeEach(async () => {
  await clearModules()
  await receiveMessages(config.PLAT_QUEUE_UPDATES)
})

/** An administrator and a stored module. */
async function installed(record: Parameters<typeof putModule>[1] = {}, options: Parameters<typeof releaseFor>[1] = {}) {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  const release = releaseFor(id, options)
  await putModule(release, record)
  return { caller, id, release }
}

test('accepts an uninstall: removes route and navigation, and queues the operation', async () => {
  const slot = { slotId: 'nav.primary', id: 'x', label: 'X', icon: 'hand', route: '/modules/x', order: 100 } as const
  const { caller, id, release } = await installed({}, { spec: { navSlots: [slot] } })
  await putModule(releaseFor(newModuleId()))
  const accepted = await uninstall(caller, id)
  const { jobId } = accepted
  expect(accepted).toEqual({ jobId, moduleId: id, status: 'Uninstalling' })
  expect(UninstallAccepted.parse(accepted)).toEqual(accepted)
  const { reservations } = await readRoutes()
  expect([reservations.has(id), reservations.size]).toEqual([false, 1])
  expect((await navigation(caller)).items.filter(({ source }) => source !== 'platform')).toEqual([])
  // The worker stops this deployment.
  expect(await moduleRecord(id)).toMatchObject({ state: 'Uninstalling', jobId, deployment: deploymentOf(release) })
  const { organisationId } = caller
  expect(await Job.read(caller, jobId)).toMatchObject({
    type: 'ModuleUninstall',
    status: 'Queued',
    payload: { moduleId: id, version: '1.0.0' },
    steps: [{ name: 'stop' }, { name: 'remove' }],
  })
  const operation = await findOperation({ organisationId, jobId })
  expect(operation && uninstallPlan(operation)).toEqual({ moduleId: id, version: '1.0.0' })
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId, jobId }])
  const [record] = await pendingRecords(organisationId)
  expect(record?.audit).toEqual({ action: 'module.uninstall', resource: id, detail: '1.0.0' })
})

test('uninstalls a failed module', async () => {
  const { caller, id } = await installed({ state: 'Failed' })
  expect(await uninstall(caller, id)).toMatchObject({ moduleId: id })
})

test('rejects a module that is not installed, and one that is unknown', async () => {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  await putCatalog({ 'r.test/a': [catalogRelease(id, '1.0.0')] })
  await expectError(uninstall(caller, id), 'module_not_installed')
  await expectError(uninstall(caller, newModuleId()), 'module_not_found')
  await expectError(uninstall(caller, '../x'), 'module_not_found')
})

test.each(['Installing', 'Upgrading', 'Uninstalling'] as const)('rejects a module that is %s', async (state) => {
  const { caller, id } = await installed({ state, jobId: newId('job') })
  await expectError(uninstall(caller, id), 'module_operation_in_progress')
})

test('accepts one of several concurrent uninstalls', async () => {
  const { caller, id } = await installed()
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => errorCodeOf(uninstall(caller, id))))
  expect(outcomes.toSorted()).toEqual([...Array<string>(3).fill('module_operation_in_progress'), 'no error'])
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toHaveLength(1)
})

test('retries if the module fails between read and write', async () => {
  const { caller, id } = await installed()
  const isFailed = beforeCommand(/TransactWrite/, () => putModule(releaseFor(id), { state: 'Failed' }))
  expect(await uninstall(caller, id)).toMatchObject({ moduleId: id })
  expect(isFailed()).toBe(true)
  expect('deployment' in ((await moduleRecord(id)) ?? {})).toBe(false)
})

test('checks the current rights of the caller', async () => {
  const { caller, id } = await installed()
  const revoked = { ...(await newCaller(undefined, 'OrgAdmin')), permissions: caller.permissions }
  await expectError(uninstall(revoked, id), 'forbidden')
  expect(await moduleRecord(id)).toMatchObject({ state: 'Running' })
  expect(await countStoreCalls(() => uninstall(caller, id))).toBe(2)
})
