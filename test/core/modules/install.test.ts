import { eventSchemas } from '@platform/contract/event'
import { InstallAccepted, UninstallAccepted } from '@platform/contract/module'
import type { Caller, IdempotentRequest } from '@platform/core/caller'
import { config } from '@platform/core/config'
import { navigation } from '@platform/core/dashboard/navigation'
import * as keys from '@platform/core/db/keys'
import { get, query, remove, update } from '@platform/core/db/table'
import { removeAll, transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { installFromCatalog, installFromImage } from '@platform/core/modules/install'
import { installPlan, uninstallPlan } from '@platform/core/modules/plans'
import { type ModuleRecord, parseModule } from '@platform/core/modules/record'
import { findRouteOwner, parseRoutes, readRoutes } from '@platform/core/modules/routes'
import { uninstall } from '@platform/core/modules/uninstall'
import { findOperation } from '@platform/core/operations/operation'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { bootstrapPlatform, errorCodeOf, expectError, newCaller } from '../../support/fixtures.ts'
import { writtenManifest } from '../../support/module-registry.ts'
import { runBefore } from '../support/interleaving.ts'
import { receiveMessages } from '../support/messages.ts'
import { catalogRelease, deploymentOf, newModuleId, putCatalog, putModule, releaseFor } from '../support/modules.ts'
import { readPendingRecords } from '../support/outbox.ts'

const registry = await vi.hoisted(async () => (await import('../../support/module-registry.ts')).startModuleFixtures())
afterAll(registry.close)
await bootstrapPlatform()

const newPlatformAdmin = (): Promise<Caller> => newCaller(undefined, 'PlatformAdmin')

async function readModuleRecord(id: string): Promise<ModuleRecord | undefined> {
  const item = await get(keys.module(id))
  return item && parseModule(item)
}

const countInstallJobs = async ({ organisationId }: Caller): Promise<number> =>
  (await query({ index: 'gsi1', pk: keys.operationsOf(organisationId, 'ModuleInstall') })).items.length

async function clearModules(): Promise<void> {
  await removeAll(keys.modules())
  await removeAll(keys.catalog())
  await transact([remove(keys.moduleRoutes())])
}

/** Pushes images of these versions and stores them in the catalog. A version with the suffix `?` is not signed. */
async function offerReleases(id: string, ...versions: string[]): Promise<void> {
  const releases = versions.map(async (text) => {
    const isVerified = !text.endsWith('?')
    const version = text.replace('?', '')
    const { digest } = await registry.push(id, { version, signer: isVerified && 'trusted' })
    return catalogRelease(id, version, { digest, isVerified, ...(!isVerified && { reason: 'No signature of it.' }) })
  })
  await putCatalog({ [`${registry.host}/modules/${id}`]: await Promise.all(releases) })
}

beforeEach(async () => {
  await clearModules()
  await receiveMessages(config.PLAT_QUEUE_INSTALLS)
})

async function pushImage(spec = {}) {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  const image = await registry.push(id, { manifest: writtenManifest(id, '1.0.0', spec) })
  return { caller, id, ...image, install: () => installFromImage(caller, { imageRef: image.reference }) }
}

test('accepts an install: reserves the route, stores the operation and queues it', async () => {
  const { caller, id, repository, digest, install } = await pushImage()
  const acceptedInstall = await install()
  const { jobId } = acceptedInstall
  const release = { moduleId: id, version: '1.0.0' }
  expect(acceptedInstall).toEqual({
    jobId,
    ...release,
    status: 'Installing',
    imageDigest: digest,
    verified: true,
    events: [],
  })
  expect(InstallAccepted.parse(acceptedInstall)).toEqual(acceptedInstall)
  const { organisationId } = caller
  expect(await readModuleRecord(id)).toMatchObject({
    id,
    organisationId,
    state: 'Installing',
    jobId,
    release: { digest },
  })
  expect((await readRoutes()).reservations.get(id)).toEqual({ apiBasePath: `/api/${id}` })
  expect(await Job.read(caller, jobId)).toMatchObject({
    type: 'ModuleInstall',
    status: 'Queued',
    payload: { ...release, image: `${repository}@${digest}`, verified: true },
  })
  const operation = await findOperation({ organisationId, jobId })
  expect(operation && installPlan(operation)).toMatchObject({ release: { moduleId: id, repository, digest } })
  expect(await receiveMessages(config.PLAT_QUEUE_INSTALLS)).toEqual([{ organisationId, jobId }])

  const [record] = await readPendingRecords(organisationId)
  const detail = `1.0.0 ${repository}@${digest}, verified by tests`
  expect(record?.audit).toEqual({ action: 'module.install', resource: id, detail })
  expect(record?.events.map(({ name }) => name)).toEqual(['module.installing', 'job.queued'])
  const data = { ...release, jobId }
  expect(record?.events[0]).toMatchObject({ subject: id, data })
  expect(eventSchemas['module.installing'].parse(record?.events[0]?.data)).toEqual(data)
})

test('installs the newest verified release of the catalog, or the requested version', async () => {
  const [id, otherId] = [newModuleId(), newModuleId()]
  await offerReleases(id, '1.2.0', '1.10.0', '2.0.0-rc.1', '3.0.0?')
  const caller = await newPlatformAdmin()
  expect(await installFromCatalog(caller, id, {})).toMatchObject({ version: '1.10.0', verified: true })
  await offerReleases(otherId, '1.2.0', '2.0.0-rc.1')
  const version = '2.0.0-rc.1'
  expect(await installFromCatalog(caller, otherId, { version })).toMatchObject({ version })
})

test('rejects unknown modules and versions, and unsigned releases', async () => {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  await offerReleases(id, '1.0.0', '3.0.0?')
  const codeOf = (module: string, version?: string) => errorCodeOf(installFromCatalog(caller, module, { version }))
  expect(await codeOf(newModuleId())).toBe('module_not_found')
  expect(await codeOf('No id')).toBe('module_not_found')
  expect(await codeOf(id, '2.0.0')).toBe('version_not_available')
  expect(await codeOf(id, '3.0.0')).toBe('module_signature_unverified')
  await offerReleases(id, '3.0.0?')
  expect(await codeOf(id)).toBe('module_signature_unverified')
  expect(await readModuleRecord(id)).toBeUndefined()
  expect(await countInstallJobs(caller)).toBe(0)
})

test('verifies the image at installation and does not trust the catalog', async () => {
  const [caller, id, otherId] = [await newPlatformAdmin(), newModuleId(), newModuleId()]
  const unsignedImage = await registry.push(id, { signer: false })
  const image = await registry.push(otherId)
  for (const [moduleId, version, { repository }, digest, code] of [
    [id, '1.0.0', unsignedImage, unsignedImage.digest, 'module_signature_unverified'],
    [id, '1.0.0', image, image.digest, 'manifest_id_mismatch'],
    [otherId, '1.0.1', image, image.digest, 'manifest_mismatch'],
    [otherId, '1.0.0', image, `sha256:${'1'.repeat(64)}`, 'image_unreachable'],
  ] as const) {
    await putCatalog({ [repository]: [catalogRelease(moduleId, version, { digest })] })
    await expectError(installFromCatalog(caller, moduleId, {}), code)
  }
  expect([await readModuleRecord(id), await readModuleRecord(otherId)]).toEqual([undefined, undefined])
})

test.each(['hello', 'hello:1.0.0', 'https://registry.example.com/x', `${registry.host}/UPPER:1`, ' '])(
  'rejects the image reference %j',
  async (imageRef) => {
    await expectError(installFromImage(await newPlatformAdmin(), { imageRef }), 'image_unreachable')
  },
)

test('checks the current rights of the caller of an install', async () => {
  const { caller, reference, install } = await pushImage()
  const revokedCaller = { ...(await newCaller(undefined, 'OrgAdmin')), permissions: caller.permissions }
  await expectError(installFromImage(revokedCaller, { imageRef: reference }), 'forbidden')
  await transact([remove(keys.user(caller.organisationId, caller.userId))])
  await expectError(install(), 'unauthenticated')
})

test('stores the response with the idempotency key in the same transaction', async () => {
  const { caller, reference } = await pushImage()
  const { organisationId } = caller
  const request: IdempotentRequest = { organisationId, key: 'once', fingerprint: 'f', status: 202 }
  const acceptedInstall = await installFromImage({ ...caller, idempotency: request }, { imageRef: reference })
  expect(await findStoredResponse(caller, request)).toEqual({ status: 202, body: acceptedInstall })
  expect(request.isStored).toBe(true)
})

test('accepts one of several concurrent installs', async () => {
  const { caller, install } = await pushImage()
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => errorCodeOf(install())))
  expect(outcomes.toSorted()).toEqual([...Array<string>(3).fill('module_operation_in_progress'), 'no error'])
  expect(await countInstallJobs(caller)).toBe(1)
  expect((await readPendingRecords(caller.organisationId)).length).toBe(1)
})

const specAt = (apiBasePath: string) => ({ spec: { apiBasePath } })

test.each([
  ['/api/team', '/api/team'],
  ['/api/team/x', '/api/team'],
  ['/api/team', '/api/team/x'],
])('rejects the path %s if another module has %s', async (apiBasePath, reserved) => {
  await putModule(releaseFor(newModuleId(), specAt(reserved)))
  const { caller, id, install } = await pushImage({ apiBasePath })
  await expectError(install(), 'module_route_taken')
  expect([await readModuleRecord(id), await countInstallJobs(caller)]).toEqual([undefined, 0])
})

test('accepts a path beside another one, and the current path at an upgrade', async () => {
  await putModule(releaseFor(newModuleId(), specAt('/api/team')))
  const { caller, id, install } = await pushImage({ apiBasePath: '/api/team2' })
  expect(await install()).toMatchObject({ moduleId: id })
  await putModule(releaseFor(id, specAt('/api/team2')))
  const manifest = writtenManifest(id, '2.0.0', { apiBasePath: '/api/team2' })
  const { reference } = await registry.push(id, { version: '2.0.0', manifest })
  expect(await installFromImage(caller, { imageRef: reference })).toMatchObject({ version: '2.0.0' })
})

test('reserves a path for one of two concurrent installs', async () => {
  const images = [await pushImage({ apiBasePath: '/api/wanted' }), await pushImage({ apiBasePath: '/api/wanted' })]
  const outcomes = await Promise.all(images.map(({ install }) => errorCodeOf(install())))
  expect(outcomes.toSorted()).toEqual(['module_route_taken', 'no error'])
  expect((await readRoutes()).reservations.size).toBe(1)
})

test('retries after a concurrent reservation of another path', async () => {
  const otherId = newModuleId()
  const { id, install } = await pushImage()
  runBefore(/TransactWrite/, () => putModule(releaseFor(otherId)))
  expect(await install()).toMatchObject({ moduleId: id })
  expect([...(await readRoutes()).reservations.keys()].toSorted()).toEqual([id, otherId].toSorted())
})

const putRunning = (id: string, version = '1.0.0') => putModule(releaseFor(id, { version }))
async function putInstalled(version: string, ...offers: string[]) {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  await putRunning(id, version)
  await offerReleases(id, ...offers)
  const upgrade = (target?: string) => installFromCatalog(caller, id, { version: target })
  const upgradeToImage = (tag: string) =>
    installFromImage(caller, { imageRef: `${registry.host}/modules/${id}:${tag}` })
  return { caller, id, upgrade, upgradeToImage }
}

test('keeps the running release and its route until the new one is published', async () => {
  const { caller, id, upgrade } = await putInstalled('1.0.0', '1.1.0')
  const routesBefore = await readRoutes()
  const { jobId } = await upgrade()
  expect(await readModuleRecord(id)).toMatchObject({ state: 'Upgrading', jobId, release: { version: '1.0.0' } })
  expect(await readRoutes()).toEqual(routesBefore)
  const operation = await findOperation({ organisationId: caller.organisationId, jobId })
  const plan = { release: { version: '1.1.0' }, previousVersion: '1.0.0' }
  expect(operation && installPlan(operation)).toMatchObject(plan)
  const [record] = await readPendingRecords(caller.organisationId)
  expect(record?.events[0]?.data).toMatchObject({ previousVersion: '1.0.0', version: '1.1.0' })
})

test('rejects the installed version, from the catalog and as an image', async () => {
  const { upgrade, upgradeToImage } = await putInstalled('1.0.0', '1.0.0')
  await expectError(upgrade(), 'module_already_installed')
  await expectError(upgrade('1.0.0'), 'module_already_installed')
  await expectError(upgradeToImage('1.0.0'), 'module_already_installed')
})

test('downgrades only to a requested version or image', async () => {
  const { upgrade } = await putInstalled('2.0.0', '1.0.0')
  await expectError(upgrade(), 'module_already_installed')
  expect(await upgrade('1.0.0')).toMatchObject({ version: '1.0.0' })
  const { upgradeToImage } = await putInstalled('2.0.0', '1.0.0')
  expect(await upgradeToImage('1.0.0')).toMatchObject({ version: '1.0.0' })
})

test('does not downgrade after a concurrent upgrade', async () => {
  const { id, upgrade } = await putInstalled('1.0.0', '1.1.0')
  runBefore(/^TransactWrite/, () => putRunning(id, '1.2.0'))
  await expectError(upgrade(), 'module_already_installed')
  expect(await readModuleRecord(id)).toMatchObject({ state: 'Running', release: { version: '1.2.0' } })
})

test('reinstalls the version of a failed module', async () => {
  const { id, upgrade } = await putInstalled('1.0.0', '1.0.0')
  await putModule(releaseFor(id), { state: 'Failed' })
  expect(await upgrade()).toMatchObject({ version: '1.0.0' })
  expect(await readModuleRecord(id)).toMatchObject({ state: 'Installing', installedAtMs: expect.any(Number) })
})

test('rejects an upgrade of a module that is not in the catalog', async () => {
  const id = newModuleId()
  await putRunning(id)
  await expectError(installFromCatalog(await newPlatformAdmin(), id, {}), 'version_not_available')
})

test.each(['Installing', 'Upgrading', 'Uninstalling'] as const)(
  'rejects an operation while a module is %s',
  async (state) => {
    const { caller, id, upgrade, upgradeToImage } = await putInstalled('1.0.0', '2.0.0')
    await putModule(releaseFor(id), { state, jobId: newId('job') })
    await expectError(upgradeToImage('2.0.0'), 'module_operation_in_progress')
    // The image of 3.0.0 does not exist, so this error shows that the platform sent no request to the registry.
    await putCatalog({ [`${registry.host}/modules/${id}`]: [catalogRelease(id, '3.0.0')] })
    await expectError(upgrade(), 'module_operation_in_progress')
    await expectError(uninstall(caller, id), 'module_operation_in_progress')
    expect(await countInstallJobs(caller)).toBe(0)
  },
)

test('rejects an upgrade if an operation starts between read and write, and retries if the module fails', async () => {
  const { id, upgrade } = await putInstalled('1.0.0', '2.0.0')
  runBefore(/TransactWrite/, () => update(keys.module(id), { set: { jobId: newId('job') } }))
  await expectError(upgrade(), 'module_operation_in_progress')
  await putRunning(id)
  runBefore(/TransactWrite/, () => putModule(releaseFor(id), { state: 'Failed' }))
  await upgrade()
  expect(await readModuleRecord(id)).toMatchObject({ state: 'Installing' })
})

test('accepts one of several concurrent upgrades', async () => {
  const { caller, upgrade } = await putInstalled('1.0.0', '2.0.0', '3.0.0')
  const outcomes = await Promise.all(['2.0.0', '3.0.0', '2.0.0'].map((version) => errorCodeOf(upgrade(version))))
  expect(outcomes.filter((outcome) => outcome === 'no error')).toHaveLength(1)
  expect(await countInstallJobs(caller)).toBe(1)
})

async function storedModule(
  record: Parameters<typeof putModule>[1] = {},
  options: Parameters<typeof releaseFor>[1] = {},
) {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  const release = releaseFor(id, options)
  await putModule(release, record)
  return { caller, id, release }
}

test('accepts an uninstall: removes route and navigation, and queues the operation', async () => {
  const slot = { slotId: 'nav.primary', id: 'x', label: 'X', icon: 'hand', route: '/modules/x', order: 100 } as const
  const { caller, id, release } = await storedModule({}, { spec: { navSlots: [slot] } })
  await putModule(releaseFor(newModuleId()))
  const acceptedUninstall = await uninstall(caller, id)
  const { jobId } = acceptedUninstall
  expect(acceptedUninstall).toEqual({ jobId, moduleId: id, status: 'Uninstalling' })
  expect(UninstallAccepted.parse(acceptedUninstall)).toEqual(acceptedUninstall)
  const { reservations } = await readRoutes()
  expect([reservations.has(id), reservations.size]).toEqual([false, 1])
  expect((await navigation(caller)).items.filter(({ source }) => source !== 'platform')).toEqual([])
  // The worker stops this deployment.
  expect(await readModuleRecord(id)).toMatchObject({ state: 'Uninstalling', jobId, deployment: deploymentOf(release) })
  const { organisationId } = caller
  expect(await Job.read(caller, jobId)).toMatchObject({
    type: 'ModuleUninstall',
    status: 'Queued',
    payload: { moduleId: id, version: '1.0.0' },
    steps: [{ name: 'stop' }, { name: 'remove' }],
  })
  const operation = await findOperation({ organisationId, jobId })
  expect(operation && uninstallPlan(operation)).toEqual({ moduleId: id, version: '1.0.0' })
  expect(await receiveMessages(config.PLAT_QUEUE_INSTALLS)).toEqual([{ organisationId, jobId }])
  const [record] = await readPendingRecords(organisationId)
  expect(record?.audit).toEqual({ action: 'module.uninstall', resource: id, detail: '1.0.0' })
})

test('uninstalls a failed module', async () => {
  const { caller, id } = await storedModule({ state: 'Failed' })
  expect(await uninstall(caller, id)).toMatchObject({ moduleId: id })
})

test('rejects an uninstall of a module that is not installed or unknown', async () => {
  const [caller, id] = [await newPlatformAdmin(), newModuleId()]
  await putCatalog({ 'r.test/a': [catalogRelease(id, '1.0.0')] })
  await expectError(uninstall(caller, id), 'module_not_installed')
  await expectError(uninstall(caller, newModuleId()), 'module_not_found')
  await expectError(uninstall(caller, '../x'), 'module_not_found')
})

test('accepts one of several concurrent uninstalls', async () => {
  const { caller, id } = await storedModule()
  const outcomes = await Promise.all(Array.from({ length: 4 }, () => errorCodeOf(uninstall(caller, id))))
  expect(outcomes.toSorted()).toEqual([...Array<string>(3).fill('module_operation_in_progress'), 'no error'])
  expect(await receiveMessages(config.PLAT_QUEUE_INSTALLS)).toHaveLength(1)
})

test('retries an uninstall if the module fails between read and write', async () => {
  const { caller, id } = await storedModule()
  runBefore(/TransactWrite/, () => putModule(releaseFor(id), { state: 'Failed' }))
  expect(await uninstall(caller, id)).toMatchObject({ moduleId: id })
  expect('deployment' in ((await readModuleRecord(id)) ?? {})).toBe(false)
})

test('checks the current rights of the caller of an uninstall', async () => {
  const { caller, id } = await storedModule()
  const revokedCaller = { ...(await newCaller(undefined, 'OrgAdmin')), permissions: caller.permissions }
  await expectError(uninstall(revokedCaller, id), 'forbidden')
  expect(await readModuleRecord(id)).toMatchObject({ state: 'Running' })
})

const routesOf = (paths: Record<string, string>) =>
  parseRoutes(
    Object.fromEntries(
      Object.entries(paths).map(([id, apiBasePath]) => [`module:${id}`, JSON.stringify({ apiBasePath })]),
    ),
  )

const paths = { hello: '/api/hello', billing: '/api/billing/v2', 'hello-2': '/api/hello-2' }

test.for([
  ['/api/hello', 'hello'],
  ['/api/hello/', 'hello'],
  ['/api/hello/a/b', 'hello'],
  ['/api/hello-2/a', 'hello-2'],
  ['/api/hello-3', undefined],
  ['/api/billing/v2/x', 'billing'],
  ['/api/billing', undefined],
  ['/api/billing/v20', undefined],
  ['/modules/hello', 'hello'],
  ['/modules/hello/page', 'hello'],
  ['/modules/hello-2', 'hello-2'],
  ['/modules/hell', undefined],
  ['/modules/', undefined],
  ['/modules', undefined],
  ['/modules/toString', undefined],
  ['/hello', undefined],
  ['/', undefined],
  ['', undefined],
] as const)('routes %j to the module %s', ([path, owner]) => {
  expect(findRouteOwner(routesOf(paths), path)?.moduleId).toBe(owner)
})

const platformPaths = '/api/v1 /api/v1/jobs /api/v2/x /api/v10 /api/modules /api/modules/install /relay/x'.split(' ')
const foreignPaths = '/ /api /api/ /api/v1 /api/v2 /api/modules /modules /modules/hello /relay'.split(' ')

test.for(['', ...foreignPaths])('does not route paths of others to a reservation of %j', (path) => {
  const routes = routesOf({ aaa: path, ...paths })
  const ownerOf = (requested: string) => findRouteOwner(routes, requested)?.moduleId
  for (const [id, api] of Object.entries(paths)) expect([ownerOf(api), ownerOf(`/modules/${id}`)]).toEqual([id, id])
  for (const requestedPath of [...platformPaths, '/health/ready', '/modules', '/'])
    expect(ownerOf(requestedPath)).toBeUndefined()
  expect(ownerOf('/modules/aaa')).toBe('aaa')
})
