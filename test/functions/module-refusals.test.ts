import { afterAll, beforeEach, expect, test, vi } from 'vitest'
import { transact } from '@platform/core/db/transact'
import { newId } from '@platform/core/id'
import { reserveRoutesWrite, readRoutes } from '@platform/core/modules/routes'
import { newPlatformAdmin, clearModules, countInstallJobs, offerReleases } from '../core/support/installs.ts'
import { catalogRelease, newModuleId, putCatalog, putModule, releaseFor } from '../core/support/modules.ts'
import { requestErrorCode, bootstrapPlatform } from '../support/fixtures.ts'
import { type ImageOptions, writtenManifest } from '../support/module-registry.ts'

/** What callers hear who ask for an install or its undoing and do not get it; why is shown by the tests of core. */

const world = await vi.hoisted(async () => (await import('../core/support/module-registry.ts')).startModuleFixtures())
afterAll(world.close)
await bootstrapPlatform()
beforeEach(clearModules)

const asked = async (request: string, body?: object) => {
  const caller = await newPlatformAdmin()
  const code = await requestErrorCode('modules', request, [caller, 'PlatformAdmin'], body)
  expect(await countInstallJobs(caller)).toBe(0)
  return code
}
const ofCatalog = (id: string, version?: string) => asked(`POST /api/v1/modules/${id}/install`, { version })
const ofImage = (imageRef: string) => asked('POST /api/modules/install', { imageRef })
const imageOf = (id: string, tag = '1.0.0') => `${world.host}/modules/${id}:${tag}`

/** An image in the registry, under a name in the catalog that says it is this module, in version 1.0.0. */
async function offered(id: string, wish: ImageOptions & { of?: string }): Promise<void> {
  const { of = id, ...image } = wish
  const { repository, digest } = await world.push(of, image)
  await putCatalog({ [repository]: [catalogRelease(id, '1.0.0', { digest })] })
}

test('what runs already, or is being worked on', async () => {
  const id = newModuleId()
  await putModule(releaseFor(id))
  await offerReleases(world, id, '1.0.0')
  expect([await ofCatalog(id), await ofImage(imageOf(id))]).toEqual(Array(2).fill('module_already_installed'))
  await putModule(releaseFor(id), { state: 'Upgrading', jobId: newId('job') })
  await offerReleases(world, id, '2.0.0')
  const undone = [await asked(`DELETE /api/v1/modules/${id}`), await asked(`DELETE /api/modules/${id}`)]
  const outcomes = [await ofCatalog(id), await ofImage(imageOf(id, '2.0.0')), ...undone]
  expect(outcomes).toEqual(Array(4).fill('module_operation_in_progress'))
})

test('the removal of what is in the catalog only', async () => {
  const id = newModuleId()
  await offerReleases(world, id, '1.0.0')
  expect(await asked(`DELETE /api/v1/modules/${id}`)).toBe('module_not_installed')
  expect(await asked(`DELETE /api/modules/${id}`)).toBe('module_not_installed')
})

test('one more module than the platform has room for', async () => {
  const subscriptions = Array.from({ length: 600 }, (_, index) => `module.${'x'.repeat(280)}.${index}`)
  for (const id of ['full-one', 'full-two'])
    await transact([reserveRoutesWrite(await readRoutes(), id, { apiBasePath: `/api/${id}`, subscriptions })])
  const id = newModuleId()
  await offerReleases(world, id, '1.0.0')
  expect([await ofCatalog(id), await ofImage(imageOf(id))]).toEqual(['limit_reached', 'limit_reached'])
})

test('a module whose path another one has', async () => {
  const id = newModuleId()
  await putModule(releaseFor(newModuleId(), { spec: { apiBasePath: '/api/team' } }))
  await offered(id, { manifest: writtenManifest(id, '1.0.0', { apiBasePath: '/api/team' }) })
  expect(await ofCatalog(id)).toBe('module_route_taken')
})

test.each<[string, (id: string) => ImageOptions & { of?: string }]>([
  ['manifest_invalid', () => ({ manifest: {} })],
  ['manifest_id_mismatch', () => ({ of: newModuleId() })],
  ['manifest_mismatch', (id) => ({ manifest: writtenManifest(id, '1.0.1') })],
  ['sdk_incompatible', (id) => ({ manifest: writtenManifest(id, '1.0.0', { sdkVersion: '^9.0.0' }) })],
  ['module_signature_unverified', () => ({ signer: false })],
  ['image_not_a_module', () => ({ labels: {} })],
])('an image that the catalog says too much of: %s', async (code, wish) => {
  const id = newModuleId()
  await offered(id, wish(id))
  expect(await ofCatalog(id)).toBe(code)
})

test('an image that is in the catalog and not in its registry', async () => {
  const id = newModuleId()
  await putCatalog({ [`${world.host}/modules/${id}`]: [catalogRelease(id, '1.0.0')] })
  expect(await ofCatalog(id)).toBe('image_unreachable')
})
