import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { installFromCatalog, installFromImage } from '@platform/core/modules/install'
import { installPlan } from '@platform/core/modules/plans'
import { readRoutes } from '@platform/core/modules/routes'
import { findOperation } from '@platform/core/operations/operation'
import { writtenManifest } from '../../support/module-registry.ts'
import { beforeCommand } from '../../support/store-calls.ts'
import { errorCodeOf, bootstrapPlatform, expectError } from '../../support/fixtures.ts'
import { pendingRecords } from '../support/outbox.ts'
import { newPlatformAdmin, clearModules, countInstallJobs, offerReleases, moduleRecord } from '../support/installs.ts'
import { catalogRelease, newModuleId, putCatalog, putModule, releaseFor } from '../support/modules.ts'

const registry = await vi.hoisted(async () => (await import('../support/module-registry.ts')).startModuleFixtures())
afterAll(registry.close)
await bootstrapPlatform()
beforeEach(clearModules)

const running = (id: string, version = '1.0.0') => putModule(releaseFor(id, { version }))
const at = (apiBasePath: string) => ({ spec: { apiBasePath } })

describe('an upgrade', () => {
  test('keeps what serves until the new release does', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await running(id)
    const before = await readRoutes()
    await offerReleases(registry, id, '1.1.0')
    const { jobId } = await installFromCatalog(caller, id, {})
    expect(await moduleRecord(id)).toMatchObject({ state: 'Upgrading', jobId, release: { version: '1.0.0' } })
    expect(await readRoutes()).toEqual(before)
    const operation = await findOperation({ organisationId: caller.organisationId, jobId })
    expect(operation && installPlan(operation)).toMatchObject({
      release: { version: '1.1.0' },
      previousVersion: '1.0.0',
    })
    const [record] = await pendingRecords(caller.organisationId)
    expect(record?.events[0]?.data).toMatchObject({ previousVersion: '1.0.0', version: '1.1.0' })
  })

  test('to what runs already is refused, by catalog and by image', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await running(id)
    await offerReleases(registry, id, '1.0.0')
    await expectError(installFromCatalog(caller, id, {}), 'module_already_installed')
    await expectError(installFromCatalog(caller, id, { version: '1.0.0' }), 'module_already_installed')
    const imageRef = `${registry.host}/modules/${id}:1.0.0`
    await expectError(installFromImage(caller, { imageRef }), 'module_already_installed')
  })

  test('never goes back unless the version is asked for, or the image', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await running(id, '2.0.0')
    await offerReleases(registry, id, '1.0.0')
    await expectError(installFromCatalog(caller, id, {}), 'module_already_installed')
    expect(await installFromCatalog(caller, id, { version: '1.0.0' })).toMatchObject({ version: '1.0.0' })
    const other = newModuleId()
    await running(other, '2.0.0')
    const { reference } = await registry.push(other)
    expect(await installFromImage(caller, { imageRef: reference })).toMatchObject({ version: '1.0.0' })
  })

  test('that nobody has named a version for does not go back where somebody else was faster with a newer one', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await running(id)
    await offerReleases(registry, id, '1.1.0')
    beforeCommand(/^TransactWrite/, () => running(id, '1.2.0'))
    await expectError(installFromCatalog(caller, id, {}), 'module_already_installed')
    expect(await moduleRecord(id)).toMatchObject({ state: 'Running', release: { version: '1.2.0' } })
  })

  test('of a module that has failed may be to the same version', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await putModule(releaseFor(id), { state: 'Failed' })
    await offerReleases(registry, id, '1.0.0')
    expect(await installFromCatalog(caller, id, {})).toMatchObject({ version: '1.0.0' })
    expect(await moduleRecord(id)).toMatchObject({ state: 'Installing', installedAtMs: expect.any(Number) })
  })

  test('of one that the catalog does not know any more has no release', async () => {
    const id = newModuleId()
    await running(id)
    await expectError(installFromCatalog(await newPlatformAdmin(), id, {}), 'version_not_available')
  })
})

describe('one operation at a time', () => {
  test.each(['Installing', 'Upgrading', 'Uninstalling'] as const)('on a module: %s', async (state) => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await putModule(releaseFor(id), { state, jobId: newId('job') })
    // No registry is asked: this one has no such image.
    await putCatalog({ [`${registry.host}/modules/${id}`]: [catalogRelease(id, '2.0.0')] })
    await expectError(installFromCatalog(caller, id, {}), 'module_operation_in_progress')
    await offerReleases(registry, id, '2.0.0')
    const imageRef = `${registry.host}/modules/${id}:2.0.0`
    await expectError(installFromImage(caller, { imageRef }), 'module_operation_in_progress')
    expect(await countInstallJobs(caller)).toBe(0)
  })

  test('of many who install the same at once one does, and the others hear of it', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    const { reference } = await registry.push(id)
    const tries = Array.from({ length: 4 }, () => errorCodeOf(installFromImage(caller, { imageRef: reference })))
    const outcomes = (await Promise.all(tries)).toSorted()
    expect(outcomes).toEqual([...Array.from({ length: 3 }, () => 'module_operation_in_progress'), 'no error'])
    expect(await countInstallJobs(caller)).toBe(1)
    expect((await pendingRecords(caller.organisationId)).length).toBe(1)
  })

  test('one that begins between reading and writing wins, and a failure between them is not overlooked', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await running(id)
    await offerReleases(registry, id, '2.0.0')
    const lock = () => update(keys.module(id), { set: { jobId: newId('job') } })
    const locked = beforeCommand(/TransactWrite/, lock)
    await expectError(installFromCatalog(caller, id, {}), 'module_operation_in_progress')
    await running(id)
    const failed = beforeCommand(/TransactWrite/, () => putModule(releaseFor(id), { state: 'Failed' }))
    await installFromCatalog(caller, id, {})
    expect(await moduleRecord(id)).toMatchObject({ state: 'Installing' })
    expect([locked(), failed()]).toEqual([true, true])
  })

  test('of many who upgrade at once one does', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await putModule(releaseFor(id))
    await offerReleases(registry, id, '2.0.0', '3.0.0')
    const tries = ['2.0.0', '3.0.0', '2.0.0'].map((version) => errorCodeOf(installFromCatalog(caller, id, { version })))
    expect((await Promise.all(tries)).filter((outcome) => outcome === 'no error')).toHaveLength(1)
    expect(await countInstallJobs(caller)).toBe(1)
  })
})

describe('a path', () => {
  test.each([
    ['/api/team', '/api/team'],
    ['/api/team/x', '/api/team'],
    ['/api/team', '/api/team/x'],
  ])('that another module has, above or below it, is refused: %s beside %s', async (wanted, taken) => {
    const caller = await newPlatformAdmin()
    const [id, other] = [newModuleId(), newModuleId()]
    await putModule(releaseFor(other, at(taken)))
    const { reference } = await registry.push(id, { manifest: writtenManifest(id, '1.0.0', { apiBasePath: wanted }) })
    await expectError(installFromImage(caller, { imageRef: reference }), 'module_route_taken')
    expect([await moduleRecord(id), await countInstallJobs(caller)]).toEqual([undefined, 0])
  })

  test('beside that of another module is good, and the own one of an upgrade as well', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await putModule(releaseFor(newModuleId(), at('/api/team')))
    const manifest = (version: string) => writtenManifest(id, version, { apiBasePath: '/api/team2' })
    const { reference } = await registry.push(id, { manifest: manifest('1.0.0') })
    expect(await installFromImage(caller, { imageRef: reference })).toMatchObject({ moduleId: id })
    await putModule(releaseFor(id, at('/api/team2')))
    const next = await registry.push(id, { version: '2.0.0', manifest: manifest('2.0.0') })
    expect(await installFromImage(caller, { imageRef: next.reference })).toMatchObject({ version: '2.0.0' })
  })

  test('goes to one of two modules that want it at once', async () => {
    const caller = await newPlatformAdmin()
    const images = await Promise.all(
      [newModuleId(), newModuleId()].map((id) =>
        registry.push(id, { manifest: writtenManifest(id, '1.0.0', { apiBasePath: '/api/wanted' }) }),
      ),
    )
    const outcomes = await Promise.all(
      images.map(({ reference }) => errorCodeOf(installFromImage(caller, { imageRef: reference }))),
    )
    expect(outcomes.toSorted()).toEqual(['module_route_taken', 'no error'])
    expect((await readRoutes()).reservations.size).toBe(1)
  })

  test('that somebody else has claimed between reading and writing is looked at again', async () => {
    const caller = await newPlatformAdmin()
    const [id, other] = [newModuleId(), newModuleId()]
    const { reference } = await registry.push(id)
    const happened = beforeCommand(/TransactWrite/, () => putModule(releaseFor(other)))
    expect(await installFromImage(caller, { imageRef: reference })).toMatchObject({ moduleId: id })
    expect(happened()).toBe(true)
    expect([...(await readRoutes()).reservations.keys()].toSorted()).toEqual([id, other].toSorted())
  })
})
