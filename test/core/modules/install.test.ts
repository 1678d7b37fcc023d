import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { eventSchemas } from '@platform/contract/event'
import { InstallAccepted } from '@platform/contract/module'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { remove } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import * as Job from '@platform/core/jobs/job'
import { installFromCatalog, installFromImage } from '@platform/core/modules/install'
import { installPlan } from '@platform/core/modules/plans'
import { readRoutes } from '@platform/core/modules/routes'
import type { IdempotentRequest } from '@platform/core/caller'
import { findStoredResponse } from '@platform/core/outbox/idempotency'
import { findOperation } from '@platform/core/operations/operation'
import { countStoreCalls } from '../../support/store-calls.ts'
import { newCaller, errorCodeOf, bootstrapPlatform, expectError } from '../../support/fixtures.ts'
import { pendingRecords } from '../support/outbox.ts'
import { newPlatformAdmin, clearModules, countInstallJobs, offerReleases, moduleRecord } from '../support/installs.ts'
import { receiveMessages } from '../support/messages.ts'
import { catalogRelease, newModuleId, putCatalog } from '../support/modules.ts'

const registry = await vi.hoisted(async () => (await import('../support/module-registry.ts')).startModuleFixtures())
afterAll(registry.close)
await bootstrapPlatform()

beforeEach(async () => {
  await clearModules()
  await receiveMessages(config.PLAT_QUEUE_UPDATES)
})

describe('an install', () => {
  test('is accepted at once: the module is taken, its path is its own, and a job waits', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    const { reference, repository, digest } = await registry.push(id)
    const accepted = await installFromImage(caller, { imageRef: reference })
    const { jobId } = accepted
    expect(accepted).toEqual({
      jobId,
      moduleId: id,
      version: '1.0.0',
      status: 'Installing',
      imageDigest: digest,
      verified: true,
    })
    expect(InstallAccepted.parse(accepted)).toEqual(accepted)
    const { organisationId } = caller
    expect(await moduleRecord(id)).toMatchObject({
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
      payload: { moduleId: id, version: '1.0.0', image: `${repository}@${digest}`, verified: true },
    })
    const operation = await findOperation({ organisationId, jobId })
    expect(operation && installPlan(operation)).toMatchObject({ release: { moduleId: id, repository, digest } })
    expect(await receiveMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId, jobId }])
  })

  test('is on record: who, which image by digest, and who vouches for it', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    const { reference, repository, digest } = await registry.push(id)
    const { jobId } = await installFromImage(caller, { imageRef: reference })
    const [record] = await pendingRecords(caller.organisationId)
    expect(record?.audit).toEqual({
      action: 'module.install',
      resource: id,
      detail: `1.0.0 ${repository}@${digest}, verified by tests`,
    })
    expect(record?.events.map(({ name }) => name)).toEqual(['module.installing', 'job.queued'])
    const data = { moduleId: id, version: '1.0.0', jobId }
    expect(record?.events[0]).toMatchObject({ subject: id, data })
    expect(eventSchemas['module.installing'].parse(record?.events[0]?.data)).toEqual(data)
  })

  test('of the catalog takes the newest verified release', async () => {
    const id = newModuleId()
    await offerReleases(registry, id, '1.2.0', '1.10.0', '2.0.0-rc.1', '3.0.0?')
    expect(await installFromCatalog(await newPlatformAdmin(), id, {})).toMatchObject({
      version: '1.10.0',
      verified: true,
    })
  })

  test('of a version takes that one, a prerelease as well', async () => {
    const id = newModuleId()
    await offerReleases(registry, id, '1.2.0', '2.0.0-rc.1')
    expect(await installFromCatalog(await newPlatformAdmin(), id, { version: '2.0.0-rc.1' })).toMatchObject({
      version: '2.0.0-rc.1',
    })
  })

  test('of what is not there, or what nobody has signed, is refused', async () => {
    const caller = await newPlatformAdmin()
    const id = newModuleId()
    await offerReleases(registry, id, '1.0.0', '3.0.0?')
    const refused = (module: string, version?: string) => errorCodeOf(installFromCatalog(caller, module, { version }))
    expect(await refused(newModuleId())).toBe('module_not_found')
    expect(await refused('No id')).toBe('module_not_found')
    expect(await refused(id, '2.0.0')).toBe('version_not_available')
    expect(await refused(id, '3.0.0')).toBe('module_signature_unverified')
    await offerReleases(registry, id, '3.0.0?')
    expect(await refused(id)).toBe('module_signature_unverified')
    expect(await moduleRecord(id)).toBeUndefined()
    expect(await countInstallJobs(caller)).toBe(0)
  })

  test('looks at the image itself: a catalog that says too much installs nothing', async () => {
    const caller = await newPlatformAdmin()
    const [id, other] = [newModuleId(), newModuleId()]
    const unsigned = await registry.push(id, { signer: false })
    await putCatalog({ [unsigned.repository]: [catalogRelease(id, '1.0.0', { digest: unsigned.digest })] })
    await expectError(installFromCatalog(caller, id, {}), 'module_signature_unverified')
    const stranger = await registry.push(other)
    await putCatalog({ [stranger.repository]: [catalogRelease(id, '1.0.0', { digest: stranger.digest })] })
    await expectError(installFromCatalog(caller, id, {}), 'manifest_id_mismatch')
    await putCatalog({ [stranger.repository]: [catalogRelease(other, '1.0.1', { digest: stranger.digest })] })
    await expectError(installFromCatalog(caller, other, {}), 'manifest_mismatch')
    await putCatalog({
      [stranger.repository]: [catalogRelease(other, '1.0.0', { digest: `sha256:${'1'.repeat(64)}` })],
    })
    await expectError(installFromCatalog(caller, other, {}), 'image_unreachable')
    expect([await moduleRecord(id), await moduleRecord(other)]).toEqual([undefined, undefined])
  })

  test('needs a reference that names its registry', async () => {
    const caller = await newPlatformAdmin()
    for (const imageRef of [
      'hello',
      'hello:1.0.0',
      'https://registry.example.com/x',
      `${registry.host}/UPPER:1`,
      ' ',
    ]) {
      await expectError(installFromImage(caller, { imageRef }), 'image_unreachable')
    }
  })

  test('is done for whoever may still do it: not for one that has lost the right, or was removed', async () => {
    const { reference } = await registry.push(newModuleId())
    const caller = await newPlatformAdmin()
    const weak = await newCaller(undefined, 'OrgAdmin')
    await expectError(
      installFromImage({ ...weak, permissions: caller.permissions }, { imageRef: reference }),
      'forbidden',
    )
    await transact([remove(keys.user(caller.organisationId, caller.userId))])
    await expectError(installFromImage(caller, { imageRef: reference }), 'unauthenticated')
  })
})

test('an install that is repeated under its key answers what it did, because both were kept together', async () => {
  const caller = await newPlatformAdmin()
  const { reference } = await registry.push(newModuleId())
  const request: IdempotentRequest = { key: 'once', fingerprint: 'f', status: 202 }
  const accepted = await installFromImage({ ...caller, idempotency: request }, { imageRef: reference })
  expect(await findStoredResponse(caller, request)).toEqual({ status: 202, body: accepted })
  expect(request.isStored).toBe(true)
})

test('an install of the catalog takes three calls, one of an image two', async () => {
  const caller = await newPlatformAdmin()
  const [id, other] = [newModuleId(), newModuleId()]
  await offerReleases(registry, id, '1.0.0')
  const { reference } = await registry.push(other)
  expect(await countStoreCalls(() => installFromCatalog(caller, id, {}))).toBe(3)
  expect(await countStoreCalls(() => installFromImage(caller, { imageRef: reference }))).toBe(2)
})
