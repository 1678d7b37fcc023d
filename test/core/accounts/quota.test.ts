import * as Organisation from '@platform/core/accounts/organisation'
import * as UserAdmin from '@platform/core/accounts/manage-users'
import { projectOrganisation } from '@platform/core/background/projections'
import type { Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import { newId } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Job from '@platform/core/jobs/job'
import * as Webhook from '@platform/core/webhooks/webhook'
import { beforeAll, expect, test } from 'vitest'
import { createTenantAdministrator, errorOf, expectError, setUpPlatform, userRequest } from '../../support/fixtures.ts'
import { scriptJob } from '../support/jobs.ts'

let platform: Caller
beforeAll(async () => ({ caller: platform } = await setUpPlatform()))

const tenantWith = async (quotas: object) => {
  const { caller } = await createTenantAdministrator(platform)
  const setQuotas = (changed: object) => Organisation.update(platform, caller.organisationId, { quotas: changed })
  expect((await setQuotas(quotas)).quotas).toMatchObject(quotas)
  return { caller, setQuotas }
}

const newCluster = (caller: Caller) => Cluster.register(caller, { name: newId('evt'), type: 'Hypervisor' })

const creations: Record<string, (caller: Caller) => Promise<unknown>> = {
  clusters: newCluster,
  users: (caller) => UserAdmin.create(caller, userRequest()),
  webhooks: (caller) => Webhook.create(caller, { url: 'https://example.com/hook', events: ['*'] }),
}

test.each(Object.entries(creations))('concurrent requests cannot exceed the quota of %s', async (resource, create) => {
  const { caller, setQuotas } = await tenantWith({ [resource]: 4 })
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => create(caller)))
  const reasons = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason)
  expect(reasons).toHaveLength(resource === 'users' ? 3 : 2)
  for (const { code, extra } of reasons) expect([code, extra]).toEqual(['limit_reached', { limit: 4, used: 4 }])
  expect(await Organisation.readUsage(caller)).toMatchObject({ [resource]: { used: 4, limit: 4 } })
  await setQuotas({ [resource]: 2 })
  expect((await errorOf(create(caller))).extra).toEqual({ limit: 2, used: 4 })
  await setQuotas({ [resource]: null })
  await create(caller)
  await setQuotas({ [resource]: 0 })
  await expectError(create(caller), 'limit_reached')
})

test('concurrent jobs and batches cannot exceed the quota of active jobs; ended jobs free it', async () => {
  const { caller, setQuotas } = await tenantWith({ activeJobs: 9 })
  const { id } = await newCluster(caller)
  const submit = () => Job.submit(caller, scriptJob(id))
  const submitBatch = (size: number) =>
    Batch.submit(caller, { jobs: Array.from({ length: size }, () => scriptJob(id)) })
  const countActiveJobs = async () => (await Organisation.readUsage(caller)).activeJobs.used
  expect((await errorOf(submitBatch(10))).extra).toEqual({ limit: 9, used: 0 })
  const acceptedBatch = await submitBatch(5)
  const jobs = await Promise.allSettled([submitBatch(5), ...Array.from({ length: 7 }, submit)])
  expect(jobs.filter(({ status }) => status === 'fulfilled')).toHaveLength(4)
  expect(await countActiveJobs()).toBe(9)
  expect((await errorOf(submit())).extra).toEqual({ limit: 9, used: 9 })
  for (const jobId of acceptedBatch.jobIds) await Job.cancel(caller, jobId)
  await projectOrganisation(caller.organisationId)
  expect(await countActiveJobs()).toBe(4)
  await setQuotas({ activeJobs: 4 })
  await expectError(submit(), 'limit_reached')
  await setQuotas({ activeJobs: 6 })
  const results = await Promise.allSettled(Array.from({ length: 4 }, submit))
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
  await setQuotas({ activeJobs: null })
  await submit()
})

test.each([
  [8, 4, 5],
  [9, 1, 9],
  [9, 8, 2],
])('%i jobs cannot exceed a quota that is lowered to %i when %i of them end', async (before, limit, ended) => {
  const { caller, setQuotas } = await tenantWith({ activeJobs: 9 })
  const { id } = await newCluster(caller)
  const { jobIds } = await Batch.submit(caller, { jobs: Array.from({ length: before }, () => scriptJob(id)) })
  await setQuotas({ activeJobs: limit })
  for (const jobId of jobIds.slice(0, ended)) await Job.cancel(caller, jobId)
  await projectOrganisation(caller.organisationId)
  const results = await Promise.allSettled(Array.from({ length: 6 }, () => Job.submit(caller, scriptJob(id))))
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(limit - (before - ended))
  expect(await Organisation.readUsage(caller)).toMatchObject({ activeJobs: { used: limit, limit } })
})

test.each(['org_unknown', newId('org')])('the quotas of %s are not found', async (organisationId) => {
  await expectError(Organisation.update(platform, organisationId, { quotas: {} }), 'organisation_not_found')
})
