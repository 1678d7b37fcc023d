import { generateKeyPairSync } from 'node:crypto'
import { UninstallAccepted } from '@platform/contract/module'
import { config } from '@platform/core/config'
import { navigation } from '@platform/core/dashboard/navigation'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { TrustedKeys } from '@platform/core/lib/settings/trusted-keys'
import { uninstallPlan } from '@platform/core/modules/plans'
import { readRoutes } from '@platform/core/modules/routes'
import { uninstall } from '@platform/core/modules/uninstall'
import { findOperation } from '@platform/core/operations/operation'
import { beforeEach, expect, test } from 'vitest'
import { bootstrapPlatform, errorCodeOf, newCaller, expectError } from '../../support/fixtures.ts'
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

const slot = { slotId: 'nav.primary', id: 'x', label: 'X', icon: 'hand', route: '/modules/x', order: 100 } as const

test('an uninstall is accepted: the module is out of routes and navigation at once, and a job waits', async () => {
  const caller = await newPlatformAdmin()
  const id = newModuleId()
  const release = releaseFor(id, { spec: { navSlots: [slot] } })
  await putModule(release)
  await putModule(releaseFor(newModuleId()))
  const accepted = await uninstall(caller, id)
  const { jobId } = accepted
  expect(accepted).toEqual({ jobId, moduleId: id, status: 'Uninstalling' })
  expect(UninstallAccepted.parse(accepted)).toEqual(accepted)
  const { reservations } = await readRoutes()
  expect([reservations.has(id), reservations.size]).toEqual([false, 1])
  expect((await navigation(caller)).items.filter(({ source }) => source !== 'platform')).toEqual([])
  // Its worker has to know what is to be stopped.
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

test('a module that has failed can be uninstalled', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id), { state: 'Failed' })
  expect(await uninstall(await newPlatformAdmin(), id)).toMatchObject({ moduleId: id })
})

test('what is not installed is not uninstalled: known to the catalog it is one thing, unknown another', async () => {
  const caller = await newPlatformAdmin()
  const id = newModuleId()
  await putCatalog({ 'r.test/a': [catalogRelease(id, '1.0.0')] })
  await expectError(uninstall(caller, id), 'module_not_installed')
  await expectError(uninstall(caller, newModuleId()), 'module_not_found')
  await expectError(uninstall(caller, '../x'), 'module_not_found')
})

test.each(['Installing', 'Upgrading', 'Uninstalling'] as const)('not while it is %s', async (state) => {
  const caller = await newPlatformAdmin()
  const id = newModuleId()
  await putModule(releaseFor(id), { state, jobId: newId('job') })
  await expectError(uninstall(caller, id), 'module_operation_in_progress')
})

test('of many at once one does, and the others hear of it', async () => {
  const caller = await newPlatformAdmin()
  const id = newModuleId()
  await putModule(releaseFor(id))
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => errorCodeOf(uninstall(caller, id))))
  expect(outcomes.toSorted()).toEqual([...Array.from({ length: 3 }, () => 'module_operation_in_progress'), 'no error'])
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toHaveLength(1)
})

test('a module that fails between reading and writing is looked at again', async () => {
  const caller = await newPlatformAdmin()
  const id = newModuleId()
  await putModule(releaseFor(id))
  const happened = beforeCommand(/TransactWrite/, () => putModule(releaseFor(id), { state: 'Failed' }))
  expect(await uninstall(caller, id)).toMatchObject({ moduleId: id })
  expect(happened()).toBe(true)
  expect('deployment' in ((await moduleRecord(id)) ?? {})).toBe(false)
})

test('an uninstall is done for whoever may still do it', async () => {
  const caller = await newPlatformAdmin()
  const id = newModuleId()
  await putModule(releaseFor(id))
  const weak = await newCaller(undefined, 'OrgAdmin')
  await expectError(uninstall({ ...weak, permissions: caller.permissions }, id), 'forbidden')
  expect(await moduleRecord(id)).toMatchObject({ state: 'Running' })
})

test('an uninstall takes two calls', async () => {
  const caller = await newPlatformAdmin()
  const id = newModuleId()
  await putModule(releaseFor(id))
  expect(await countStoreCalls(() => uninstall(caller, id))).toBe(2)
})

const pemOf = ({ publicKey }: ReturnType<typeof generateKeyPairSync>): string =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString()

const strong = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const isTaken = (pem: string): boolean => TrustedKeys.safeParse(JSON.stringify([{ name: 'it', pem }])).success

test('a key that can vouch for images may be trusted', () => {
  expect(isTaken(pemOf(strong))).toBe(true)
  expect(isTaken(pemOf(generateKeyPairSync('ed25519')))).toBe(true)
})

test.each([
  ['a weak one', pemOf(generateKeyPairSync('rsa', { modulusLength: 1024 }))],
  ['one on a curve that is not taken', pemOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }))],
  ['one that signs nothing', pemOf(generateKeyPairSync('x25519'))],
  ['a private one', strong.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
  ['none', 'a key'],
])('a key that would vouch for nothing is refused at the start: %s', (_name, pem) => {
  expect(isTaken(pem)).toBe(false)
})
