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
import { findStoredResponse, storeResponseWrite } from '@platform/core/outbox/idempotency'
import { findOperation } from '@platform/core/operations/operation'
import { callsOf } from '../../support/store-calls.ts'
import { callerOf, refusalOf, started } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { admin, forgetModules, jobsOf, offer, rowOf } from '../support/installs.ts'
import { takeMessages } from '../support/messages.ts'
import { found, newModuleId, putCatalog } from '../support/modules.ts'

const world = await vi.hoisted(async () => (await import('../support/module-hoist.ts')).startModuleWorld())
afterAll(world.close)
await started()

beforeEach(async () => {
  await forgetModules()
  await takeMessages(config.PLAT_QUEUE_UPDATES)
})

describe('an install', () => {
  test('is accepted at once: the module is taken, its path is its own, and a job waits', async () => {
    const caller = await admin()
    const id = newModuleId()
    const { reference, repository, digest } = await world.push(id)
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
    expect(await rowOf(id)).toMatchObject({ id, organisationId, state: 'Installing', jobId, release: { digest } })
    expect((await readRoutes()).claims.get(id)).toEqual({ apiBasePath: `/api/${id}` })
    expect(await Job.read(caller, jobId)).toMatchObject({
      type: 'ModuleInstall',
      status: 'Queued',
      payload: { moduleId: id, version: '1.0.0', image: `${repository}@${digest}`, verified: true },
    })
    const operation = await findOperation({ organisationId, jobId })
    expect(operation && installPlan(operation)).toMatchObject({ release: { moduleId: id, repository, digest } })
    expect(await takeMessages(config.PLAT_QUEUE_UPDATES)).toEqual([{ organisationId, jobId }])
  })

  test('is on record: who, which image by digest, and who vouches for it', async () => {
    const caller = await admin()
    const id = newModuleId()
    const { reference, repository, digest } = await world.push(id)
    const { jobId } = await installFromImage(caller, { imageRef: reference })
    const [record] = await waitingRecords(caller.organisationId)
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
    await offer(world, id, '1.2.0', '1.10.0', '2.0.0-rc.1', '3.0.0?')
    expect(await installFromCatalog(await admin(), id, {})).toMatchObject({ version: '1.10.0', verified: true })
  })

  test('of a version takes that one, a prerelease as well', async () => {
    const id = newModuleId()
    await offer(world, id, '1.2.0', '2.0.0-rc.1')
    expect(await installFromCatalog(await admin(), id, { version: '2.0.0-rc.1' })).toMatchObject({
      version: '2.0.0-rc.1',
    })
  })

  test('of what is not there, or what nobody has signed, is refused', async () => {
    const caller = await admin()
    const id = newModuleId()
    await offer(world, id, '1.0.0', '3.0.0?')
    const refused = (module: string, version?: string) => refusalOf(installFromCatalog(caller, module, { version }))
    expect(await refused(newModuleId())).toBe('module_not_found')
    expect(await refused('No id')).toBe('module_not_found')
    expect(await refused(id, '2.0.0')).toBe('version_not_available')
    expect(await refused(id, '3.0.0')).toBe('module_signature_unverified')
    await offer(world, id, '3.0.0?')
    expect(await refused(id)).toBe('module_signature_unverified')
    expect(await rowOf(id)).toBeUndefined()
    expect(await jobsOf(caller)).toBe(0)
  })

  test('looks at the image itself: a catalog that says too much installs nothing', async () => {
    const caller = await admin()
    const [id, other] = [newModuleId(), newModuleId()]
    const unsigned = await world.push(id, { signer: false })
    await putCatalog({ [unsigned.repository]: [found(id, '1.0.0', { digest: unsigned.digest })] })
    expect(await refusalOf(installFromCatalog(caller, id, {}))).toBe('module_signature_unverified')
    const stranger = await world.push(other)
    await putCatalog({ [stranger.repository]: [found(id, '1.0.0', { digest: stranger.digest })] })
    expect(await refusalOf(installFromCatalog(caller, id, {}))).toBe('manifest_id_mismatch')
    await putCatalog({ [stranger.repository]: [found(other, '1.0.1', { digest: stranger.digest })] })
    expect(await refusalOf(installFromCatalog(caller, other, {}))).toBe('manifest_mismatch')
    await putCatalog({ [stranger.repository]: [found(other, '1.0.0', { digest: `sha256:${'1'.repeat(64)}` })] })
    expect(await refusalOf(installFromCatalog(caller, other, {}))).toBe('image_unreachable')
    expect([await rowOf(id), await rowOf(other)]).toEqual([undefined, undefined])
  })

  test('needs a reference that names its registry', async () => {
    const caller = await admin()
    for (const imageRef of ['hello', 'hello:1.0.0', 'https://registry.example.com/x', `${world.host}/UPPER:1`, ' ']) {
      expect(await refusalOf(installFromImage(caller, { imageRef }))).toBe('image_unreachable')
    }
  })

  test('is done for whoever may still do it: not for one that has lost the right, or was removed', async () => {
    const { reference } = await world.push(newModuleId())
    const caller = await admin()
    const weak = await callerOf(undefined, 'OrgAdmin')
    expect(
      await refusalOf(installFromImage({ ...weak, permissions: caller.permissions }, { imageRef: reference })),
    ).toBe('forbidden')
    await transact([remove(keys.user(caller.organisationId, caller.userId))])
    expect(await refusalOf(installFromImage(caller, { imageRef: reference }))).toBe('unauthenticated')
  })
})

test('an install that is repeated under its key answers what it did, because both were kept together', async () => {
  const caller = await admin()
  const { reference } = await world.push(newModuleId())
  const request = { key: 'once', fingerprint: 'f' }
  let happened = false
  const once = {
    step: (body: unknown) => storeResponseWrite(caller, request, { status: 202, body }),
    happened: () => void (happened = true),
  }
  const accepted = await installFromImage({ ...caller, once }, { imageRef: reference })
  expect(await findStoredResponse(caller, request)).toEqual({ status: 202, body: accepted })
  expect(happened).toBe(true)
})

test('an install of the catalog takes three calls, one of an image two', async () => {
  const caller = await admin()
  const [id, other] = [newModuleId(), newModuleId()]
  await offer(world, id, '1.0.0')
  const { reference } = await world.push(other)
  expect(await callsOf(() => installFromCatalog(caller, id, {}))).toBe(3)
  expect(await callsOf(() => installFromImage(caller, { imageRef: reference }))).toBe(2)
})
