import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import * as keys from '@platform/core/db/keys'
import { update } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { installFromCatalog, installFromImage } from '@platform/core/modules/install'
import { installPlan } from '@platform/core/modules/plans'
import { readRoutes } from '@platform/core/modules/routes'
import { findOperation } from '@platform/core/operations/operation'
import { writtenManifest } from '../../support/module-registry.ts'
import { justBefore } from '../../support/store-calls.ts'
import { refusalOf, started } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { admin, forgetModules, jobsOf, offer, rowOf } from '../support/installs.ts'
import { found, newModuleId, putCatalog, putModule, releaseFor } from '../support/modules.ts'

const world = await vi.hoisted(async () => (await import('../support/module-hoist.ts')).startModuleWorld())
afterAll(world.close)
await started()
beforeEach(forgetModules)

const running = (id: string, version = '1.0.0') => putModule(releaseFor(id, { version }))
const at = (apiBasePath: string) => ({ spec: { apiBasePath } })

describe('an upgrade', () => {
  test('keeps what serves until the new release does', async () => {
    const caller = await admin()
    const id = newModuleId()
    await running(id)
    const before = await readRoutes()
    await offer(world, id, '1.1.0')
    const { jobId } = await installFromCatalog(caller, id, {})
    expect(await rowOf(id)).toMatchObject({ state: 'Upgrading', jobId, release: { version: '1.0.0' } })
    expect(await readRoutes()).toEqual(before)
    const operation = await findOperation({ organisationId: caller.organisationId, jobId })
    expect(operation && installPlan(operation)).toMatchObject({
      release: { version: '1.1.0' },
      previousVersion: '1.0.0',
    })
    const [record] = await waitingRecords(caller.organisationId)
    expect(record?.events[0]?.data).toMatchObject({ previousVersion: '1.0.0', version: '1.1.0' })
  })

  test('to what runs already is refused, by catalog and by image', async () => {
    const caller = await admin()
    const id = newModuleId()
    await running(id)
    await offer(world, id, '1.0.0')
    expect(await refusalOf(installFromCatalog(caller, id, {}))).toBe('module_already_installed')
    expect(await refusalOf(installFromCatalog(caller, id, { version: '1.0.0' }))).toBe('module_already_installed')
    const imageRef = `${world.host}/modules/${id}:1.0.0`
    expect(await refusalOf(installFromImage(caller, { imageRef }))).toBe('module_already_installed')
  })

  test('never goes back unless the version is asked for, or the image', async () => {
    const caller = await admin()
    const id = newModuleId()
    await running(id, '2.0.0')
    await offer(world, id, '1.0.0')
    expect(await refusalOf(installFromCatalog(caller, id, {}))).toBe('module_already_installed')
    expect(await installFromCatalog(caller, id, { version: '1.0.0' })).toMatchObject({ version: '1.0.0' })
    const other = newModuleId()
    await running(other, '2.0.0')
    const { reference } = await world.push(other)
    expect(await installFromImage(caller, { imageRef: reference })).toMatchObject({ version: '1.0.0' })
  })

  test('that nobody has named a version for does not go back where somebody else was faster with a newer one', async () => {
    const caller = await admin()
    const id = newModuleId()
    await running(id)
    await offer(world, id, '1.1.0')
    justBefore(/^TransactWrite/, () => running(id, '1.2.0'))
    expect(await refusalOf(installFromCatalog(caller, id, {}))).toBe('module_already_installed')
    expect(await rowOf(id)).toMatchObject({ state: 'Running', release: { version: '1.2.0' } })
  })

  test('of a module that has failed may be to the same version', async () => {
    const caller = await admin()
    const id = newModuleId()
    await putModule(releaseFor(id), { state: 'Failed' })
    await offer(world, id, '1.0.0')
    expect(await installFromCatalog(caller, id, {})).toMatchObject({ version: '1.0.0' })
    expect(await rowOf(id)).toMatchObject({ state: 'Installing', installedAtMs: expect.any(Number) })
  })

  test('of one that the catalog does not know any more has no release', async () => {
    const id = newModuleId()
    await running(id)
    expect(await refusalOf(installFromCatalog(await admin(), id, {}))).toBe('version_not_available')
  })
})

describe('one operation at a time', () => {
  test.each(['Installing', 'Upgrading', 'Uninstalling'] as const)('on a module: %s', async (state) => {
    const caller = await admin()
    const id = newModuleId()
    await putModule(releaseFor(id), { state, jobId: newId('job') })
    // No registry is asked: this one has no such image.
    await putCatalog({ [`${world.host}/modules/${id}`]: [found(id, '2.0.0')] })
    expect(await refusalOf(installFromCatalog(caller, id, {}))).toBe('module_operation_in_progress')
    await offer(world, id, '2.0.0')
    const imageRef = `${world.host}/modules/${id}:2.0.0`
    expect(await refusalOf(installFromImage(caller, { imageRef }))).toBe('module_operation_in_progress')
    expect(await jobsOf(caller)).toBe(0)
  })

  test('of many who install the same at once one does, and the others hear of it', async () => {
    const caller = await admin()
    const id = newModuleId()
    const { reference } = await world.push(id)
    const tries = Array.from({ length: 4 }, () => refusalOf(installFromImage(caller, { imageRef: reference })))
    const outcomes = (await Promise.all(tries)).toSorted()
    expect(outcomes).toEqual([
      ...Array.from({ length: 3 }, () => 'module_operation_in_progress'),
      'nothing was refused',
    ])
    expect(await jobsOf(caller)).toBe(1)
    expect((await waitingRecords(caller.organisationId)).length).toBe(1)
  })

  test('one that begins between reading and writing wins, and a failure between them is not overlooked', async () => {
    const caller = await admin()
    const id = newModuleId()
    await running(id)
    await offer(world, id, '2.0.0')
    const lock = () => update(keys.module(id), { set: { jobId: newId('job') } })
    const locked = justBefore(/TransactWrite/, lock)
    expect(await refusalOf(installFromCatalog(caller, id, {}))).toBe('module_operation_in_progress')
    await running(id)
    const failed = justBefore(/TransactWrite/, () => putModule(releaseFor(id), { state: 'Failed' }))
    await installFromCatalog(caller, id, {})
    expect(await rowOf(id)).toMatchObject({ state: 'Installing' })
    expect([locked(), failed()]).toEqual([true, true])
  })

  test('of many who upgrade at once one does', async () => {
    const caller = await admin()
    const id = newModuleId()
    await putModule(releaseFor(id))
    await offer(world, id, '2.0.0', '3.0.0')
    const tries = ['2.0.0', '3.0.0', '2.0.0'].map((version) => refusalOf(installFromCatalog(caller, id, { version })))
    expect((await Promise.all(tries)).filter((outcome) => outcome === 'nothing was refused')).toHaveLength(1)
    expect(await jobsOf(caller)).toBe(1)
  })
})

describe('a path', () => {
  test.each([
    ['/api/team', '/api/team'],
    ['/api/team/x', '/api/team'],
    ['/api/team', '/api/team/x'],
  ])('that another module has, above or below it, is refused: %s beside %s', async (wanted, taken) => {
    const caller = await admin()
    const [id, other] = [newModuleId(), newModuleId()]
    await putModule(releaseFor(other, at(taken)))
    const { reference } = await world.push(id, { manifest: writtenManifest(id, '1.0.0', { apiBasePath: wanted }) })
    expect(await refusalOf(installFromImage(caller, { imageRef: reference }))).toBe('module_route_taken')
    expect([await rowOf(id), await jobsOf(caller)]).toEqual([undefined, 0])
  })

  test('beside that of another module is good, and the own one of an upgrade as well', async () => {
    const caller = await admin()
    const id = newModuleId()
    await putModule(releaseFor(newModuleId(), at('/api/team')))
    const manifest = (version: string) => writtenManifest(id, version, { apiBasePath: '/api/team2' })
    const { reference } = await world.push(id, { manifest: manifest('1.0.0') })
    expect(await installFromImage(caller, { imageRef: reference })).toMatchObject({ moduleId: id })
    await putModule(releaseFor(id, at('/api/team2')))
    const next = await world.push(id, { version: '2.0.0', manifest: manifest('2.0.0') })
    expect(await installFromImage(caller, { imageRef: next.reference })).toMatchObject({ version: '2.0.0' })
  })

  test('goes to one of two modules that want it at once', async () => {
    const caller = await admin()
    const images = await Promise.all(
      [newModuleId(), newModuleId()].map((id) =>
        world.push(id, { manifest: writtenManifest(id, '1.0.0', { apiBasePath: '/api/wanted' }) }),
      ),
    )
    const outcomes = await Promise.all(
      images.map(({ reference }) => refusalOf(installFromImage(caller, { imageRef: reference }))),
    )
    expect(outcomes.toSorted()).toEqual(['module_route_taken', 'nothing was refused'])
    expect((await readRoutes()).claims.size).toBe(1)
  })

  test('that somebody else has claimed between reading and writing is looked at again', async () => {
    const caller = await admin()
    const [id, other] = [newModuleId(), newModuleId()]
    const { reference } = await world.push(id)
    const happened = justBefore(/TransactWrite/, () => putModule(releaseFor(other)))
    expect(await installFromImage(caller, { imageRef: reference })).toMatchObject({ moduleId: id })
    expect(happened()).toBe(true)
    expect([...(await readRoutes()).claims.keys()].toSorted()).toEqual([id, other].toSorted())
  })
})
