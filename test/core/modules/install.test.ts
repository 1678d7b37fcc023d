import { eventSchemas } from '@platform/contract/event'
import { InstallAccepted } from '@platform/contract/module'
import type { IdempotentRequest } from '@platform/core/caller'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { installFromCatalog, installFromImage } from '@platform/core/modules/install'
import { installPlan } from '@platform/core/modules/plans'
import { readRoutes } from '@platform/core/modules/routes'
import { findOperation } from '@platform/core/operations/operation'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { bootstrapPlatform, errorCodeOf, expectError, newCaller } from '../../support/fixtures.ts'
import { writtenManifest } from '../../support/module-registry.ts'
import { beforeCommand } from '../../support/store-calls.ts'
import { clearModules, countInstallJobs, moduleRecord, newPlatformAdmin, offerReleases } from '../support/installs.ts'
import { receiveMessages } from '../support/messages.ts'
import { catalogRelease, newModuleId, putCatalog, putModule, releaseFor } from '../support/modules.ts'
import { pendingRecords } from '../support/outbox.ts'

const registry = await vi.hoisted(async () => (await import('../../support/module-registry.ts')).startModuleFixtures())
afterAll(registry.close)
await bootstrapPlatform()

beforeEach(async () => {
  await clearModules()
  await receiveMessages(config.PLAT_QUEUE_UPDATES)
})

/** An administrator, and an image of a new module. */
async function pushed(spec = {}) {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  const image = await registry.push(id, { manifest: writtenManifest(id, '1.0.0', spec) })
  return { caller, id, ...image, install: () => installFromImage(caller, { imageRef: image.reference }) }
}

test('accepts an install: reserves the route, stores the operation and queues it', async () => {
  const { caller, id, repository, digest, install } = await pushed()
  const accepted = await install()
  const { jobId } = accepted
  const release = { moduleId: id, version: '1.0.0' }
  expect(accepted).toEqual({ jobId, ...release, status: 'Installing', imageDigest: digest, verified: true })
  expect(InstallAccepted.parse(accepted)).toEqual(accepted)
  const { organisationId } = caller
  expect(await moduleRecord(id)).toMatchObject({ id, organisationId, state: 'Installing', jobId, release: { digest } })
  expect((await readRoutes()).reservations.get(id)).toEqual({ apiBasePath: `/api/${id}` })
  expect(await Job.read(caller, jobId)).toMatchObject({
    type: 'ModuleInstall',
    status: 'Queued',
    payload: { ...release, image: `${repository}@${digest}`, verified: true },
  })
  const operation = await findOperation({ organisationId, jobId })
  expect(operation && installPlan(operation)).toMatchObject({ release: { moduleId: id, repository, digest } })
  expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId, jobId }])

  const [record] = await pendingRecords(organisationId)
  const detail = `1.0.0 ${repository}@${digest}, verified by tests`
  expect(record?.audit).toEqual({ action: 'module.install', resource: id, detail })
  expect(record?.events.map(({ name }) => name)).toEqual(['module.installing', 'job.queued'])
  const data = { ...release, jobId }
  expect(record?.events[0]).toMatchObject({ subject: id, data })
  expect(eventSchemas['module.installing'].parse(record?.events[0]?.data)).toEqual(data)
})

test('installs the newest verified release of the catalog, or the requested version', async () => {
  const [id, other] = [newModuleId(), newModuleId()]
  await offerReleases(registry, id, '1.2.0', '1.10.0', '2.0.0-rc.1', '3.0.0?')
  const caller = await newPlatformAdmin()
  expect(await installFromCatalog(caller, id, {})).toMatchObject({ version: '1.10.0', verified: true })
  await offerReleases(registry, other, '1.2.0', '2.0.0-rc.1')
  const version = '2.0.0-rc.1'
  expect(await installFromCatalog(caller, other, { version })).toMatchObject({ version })
})

test('rejects unknown modules and versions, and unsigned releases', async () => {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  await offerReleases(registry, id, '1.0.0', '3.0.0?')
  const codeOf = (module: string, version?: string) => errorCodeOf(installFromCatalog(caller, module, { version }))
  expect(await codeOf(newModuleId())).toBe('module_not_found')
  expect(await codeOf('No id')).toBe('module_not_found')
  expect(await codeOf(id, '2.0.0')).toBe('version_not_available')
  expect(await codeOf(id, '3.0.0')).toBe('module_signature_unverified')
  await offerReleases(registry, id, '3.0.0?')
  expect(await codeOf(id)).toBe('module_signature_unverified')
  expect(await moduleRecord(id)).toBeUndefined()
  expect(await countInstallJobs(caller)).toBe(0)
})

test('verifies the image instead of the catalog', async () => {
  const [caller, id, other] = [await newPlatformAdmin(), newModuleId(), newModuleId()]
  const unsigned = await registry.push(id, { signer: false })
  const image = await registry.push(other)
  for (const [moduleId, version, { repository }, digest, code] of [
    [id, '1.0.0', unsigned, unsigned.digest, 'module_signature_unverified'],
    [id, '1.0.0', image, image.digest, 'manifest_id_mismatch'],
    [other, '1.0.1', image, image.digest, 'manifest_mismatch'],
    [other, '1.0.0', image, `sha256:${'1'.repeat(64)}`, 'image_unreachable'],
  ] as const) {
    await putCatalog({ [repository]: [catalogRelease(moduleId, version, { digest })] })
    await expectError(installFromCatalog(caller, moduleId, {}), code)
  }
  expect([await moduleRecord(id), await moduleRecord(other)]).toEqual([undefined, undefined])
})

test.each(['hello', 'hello:1.0.0', 'https://registry.example.com/x', `${registry.host}/UPPER:1`, ' '])(
  'rejects the image reference %j',
  async (imageRef) => {
    await expectError(installFromImage(await newPlatformAdmin(), { imageRef }), 'image_unreachable')
  },
)

test('checks the current rights of the caller', async () => {
  const { caller, reference, install } = await pushed()
  const revoked = { ...(await newCaller(undefined, 'OrgAdmin')), permissions: caller.permissions }
  await expectError(installFromImage(revoked, { imageRef: reference }), 'forbidden')
  await transact([remove(keys.user(caller.organisationId, caller.userId))])
  await expectError(install(), 'unauthenticated')
})

test('stores the response with the idempotency key in the same transaction', async () => {
  const { caller, reference } = await pushed()
  const request: IdempotentRequest = { key: 'once', fingerprint: 'f', status: 202 }
  const accepted = await installFromImage({ ...caller, idempotency: request }, { imageRef: reference })
  expect(await findStoredResponse(caller, request)).toEqual({ status: 202, body: accepted })
  expect(request.isStored).toBe(true)
})

test('accepts one of several concurrent installs', async () => {
  const { caller, install } = await pushed()
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => errorCodeOf(install())))
  expect(outcomes.toSorted()).toEqual([...Array<string>(3).fill('module_operation_in_progress'), 'no error'])
  expect(await countInstallJobs(caller)).toBe(1)
  expect((await pendingRecords(caller.organisationId)).length).toBe(1)
})

const at = (apiBasePath: string) => ({ spec: { apiBasePath } })

test.each([
  ['/api/team', '/api/team'],
  ['/api/team/x', '/api/team'],
  ['/api/team', '/api/team/x'],
])('rejects the path %s if another module has %s', async (apiBasePath, reserved) => {
  await putModule(releaseFor(newModuleId(), at(reserved)))
  const { caller, id, install } = await pushed({ apiBasePath })
  await expectError(install(), 'module_route_taken')
  expect([await moduleRecord(id), await countInstallJobs(caller)]).toEqual([undefined, 0])
})

test('accepts a path beside another one, and the current path at an upgrade', async () => {
  await putModule(releaseFor(newModuleId(), at('/api/team')))
  const { caller, id, install } = await pushed({ apiBasePath: '/api/team2' })
  expect(await install()).toMatchObject({ moduleId: id })
  await putModule(releaseFor(id, at('/api/team2')))
  const manifest = writtenManifest(id, '2.0.0', { apiBasePath: '/api/team2' })
  const { reference } = await registry.push(id, { version: '2.0.0', manifest })
  expect(await installFromImage(caller, { imageRef: reference })).toMatchObject({ version: '2.0.0' })
})

test('reserves a path for one of two concurrent installs', async () => {
  const images = [await pushed({ apiBasePath: '/api/wanted' }), await pushed({ apiBasePath: '/api/wanted' })]
  const outcomes = await Promise.all(images.map(({ install }) => errorCodeOf(install())))
  expect(outcomes.toSorted()).toEqual(['module_route_taken', 'no error'])
  expect((await readRoutes()).reservations.size).toBe(1)
})

test('retries after a concurrent reservation of another path', async () => {
  const other = newModuleId()
  const { id, install } = await pushed()
  const isReserved = beforeCommand(/TransactWrite/, () => putModule(releaseFor(other)))
  expect(await install()).toMatchObject({ moduleId: id })
  expect(isReserved()).toBe(true)
  expect([...(await readRoutes()).reservations.keys()].toSorted()).toEqual([id, other].toSorted())
})
