import { beforeEach, expect, test } from 'vitest'
import { UninstallAccepted } from '@platform/contract/module'
import { config } from '@platform/core/config'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { uninstallPlan } from '@platform/core/modules/plans'
import { readRoutes } from '@platform/core/modules/routes'
import { uninstall } from '@platform/core/modules/uninstall'
import { navigation } from '@platform/core/dashboard/navigation'
import { findOperation } from '@platform/core/operations/operation'
import { callsOf, justBefore } from '../../support/store-calls.ts'
import { callerOf, refusalOf, started } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { admin, forgetModules, rowOf } from '../support/installs.ts'
import { takeMessages } from '../support/messages.ts'
import { deploymentOf, found, newModuleId, putCatalog, putModule, releaseFor } from '../support/modules.ts'

await started()
beforeEach(async () => {
  await forgetModules()
  await takeMessages(config.PLAT_QUEUE_UPDATES)
})

const slot = { slotId: 'nav.primary', id: 'x', label: 'X', icon: 'hand', route: '/modules/x', order: 100 } as const

test('an uninstall is accepted: the module is out of routes and navigation at once, and a job waits', async () => {
  const caller = await admin()
  const id = newModuleId()
  const release = releaseFor(id, { spec: { navSlots: [slot] } })
  await putModule(release)
  await putModule(releaseFor(newModuleId()))
  const accepted = await uninstall(caller, id)
  const { jobId } = accepted
  expect(accepted).toEqual({ jobId, moduleId: id, status: 'Uninstalling' })
  expect(UninstallAccepted.parse(accepted)).toEqual(accepted)
  const { claims } = await readRoutes()
  expect([claims.has(id), claims.size]).toEqual([false, 1])
  expect((await navigation(caller)).items.filter(({ source }) => source !== 'platform')).toEqual([])
  // Its worker has to know what is to be stopped.
  expect(await rowOf(id)).toMatchObject({ state: 'Uninstalling', jobId, deployment: deploymentOf(release) })
  const { organisationId } = caller
  expect(await Job.read(caller, jobId)).toMatchObject({
    type: 'ModuleUninstall',
    status: 'Queued',
    payload: { moduleId: id, version: '1.0.0' },
    steps: [{ name: 'stop' }, { name: 'remove' }],
  })
  const operation = await findOperation({ organisationId, jobId })
  expect(operation && uninstallPlan(operation)).toEqual({ moduleId: id, version: '1.0.0' })
  expect(await takeMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId, jobId }])
  const [record] = await waitingRecords(organisationId)
  expect(record?.audit).toEqual({ action: 'module.uninstall', resource: id, detail: '1.0.0' })
})

test('a module that has failed can be uninstalled', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id), { state: 'Failed' })
  expect(await uninstall(await admin(), id)).toMatchObject({ moduleId: id })
})

test('what is not installed is not uninstalled: known to the catalog it is one thing, unknown another', async () => {
  const caller = await admin()
  const id = newModuleId()
  await putCatalog({ 'r.test/a': [found(id, '1.0.0')] })
  expect(await refusalOf(uninstall(caller, id))).toBe('module_not_installed')
  expect(await refusalOf(uninstall(caller, newModuleId()))).toBe('module_not_found')
  expect(await refusalOf(uninstall(caller, '../x'))).toBe('module_not_found')
})

test.each(['Installing', 'Upgrading', 'Uninstalling'] as const)('not while it is %s', async (state) => {
  const caller = await admin()
  const id = newModuleId()
  await putModule(releaseFor(id), { state, jobId: newId('job') })
  expect(await refusalOf(uninstall(caller, id))).toBe('module_operation_in_progress')
})

test('of many at once one does, and the others hear of it', async () => {
  const caller = await admin()
  const id = newModuleId()
  await putModule(releaseFor(id))
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => refusalOf(uninstall(caller, id))))
  expect(outcomes.toSorted()).toEqual([
    ...Array.from({ length: 3 }, () => 'module_operation_in_progress'),
    'nothing was refused',
  ])
  expect(await takeMessages(config.PLAT_QUEUE_UPDATES)).toHaveLength(1)
})

test('a module that fails between reading and writing is looked at again', async () => {
  const caller = await admin()
  const id = newModuleId()
  await putModule(releaseFor(id))
  const happened = justBefore(/TransactWrite/, () => putModule(releaseFor(id), { state: 'Failed' }))
  expect(await uninstall(caller, id)).toMatchObject({ moduleId: id })
  expect(happened()).toBe(true)
  expect('deployment' in ((await rowOf(id)) ?? {})).toBe(false)
})

test('an uninstall is done for whoever may still do it', async () => {
  const caller = await admin()
  const id = newModuleId()
  await putModule(releaseFor(id))
  const weak = await callerOf(undefined, 'OrgAdmin')
  expect(await refusalOf(uninstall({ ...weak, permissions: caller.permissions }, id))).toBe('forbidden')
  expect(await rowOf(id)).toMatchObject({ state: 'Running' })
})

test('an uninstall takes two calls', async () => {
  const caller = await admin()
  const id = newModuleId()
  await putModule(releaseFor(id))
  expect(await callsOf(() => uninstall(caller, id))).toBe(2)
})
