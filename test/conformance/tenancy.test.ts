import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'
import { jobFor } from './support/batch.ts'
import { waitFor } from '../support/wait-for.ts'

const path = '/api/v1/platform/organisations'

test('creates and lists organisations with unique names', async ({ platform, admin }) => {
  const { organisationId } = await platform.tenant
  const list = () =>
    waitFor('the organisation is listed', async () => {
      const { items } = expectStatus(await admin.get(`${path}?pageSize=100`), 200)
      return items.some(({ id }: any) => id === organisationId) && items
    })
  const items: any[] = await list()
  const organisation = items.find(({ id }) => id === organisationId)
  expect(organisation.isPlatform).toBe(false)
  expectStatus(await admin.post(path, { name: organisation.name }), 409, 'organisation_name_taken')
  const me = expectStatus(await admin.get('/api/v1/auth/me'), 200)
  const platforms = items.filter(({ isPlatform }) => isPlatform)
  expect(platforms.every(({ id }) => id === me.organisationId)).toBe(true)
})

test('a quota refuses further resources until it is raised', async ({ platform, admin }) => {
  const tenant = await platform.tenant
  const organisation = `${path}/${tenant.organisationId}`
  const { id } = await platform.as(tenant).newCluster()
  const { clusters } = expectStatus(await tenant.client.get('/api/v1/organisation/usage'), 200)
  expectStatus(await admin.patch(organisation, { quotas: { clusters: clusters.used, activeJobs: 0 } }), 200)
  const registration = { name: platform.newName(), type: 'Hypervisor' }
  const refusedRegistration = expectStatus(
    await tenant.client.post('/api/v1/clusters', registration),
    409,
    'limit_reached',
  )
  expect(refusedRegistration).toMatchObject({ limit: clusters.used, used: clusters.used })
  expectStatus(await tenant.client.post('/api/v1/jobs', jobFor(id)), 409, 'limit_reached')
  expectStatus(await tenant.client.patch(organisation, { quotas: {} }), 403, 'forbidden')
  const raisedQuotas = expectStatus(
    await admin.patch(organisation, { quotas: { clusters: null, activeJobs: null } }),
    200,
  )
  expect(raisedQuotas.quotas).toEqual({ clusters: null, users: null, webhooks: null, activeJobs: null })
  await platform.as(tenant).submit(id)
})

test('hides other organisations from platform administrators', async ({ platform, admin }) => {
  const tenant = await platform.tenant
  const tenantPlatform = platform.as(tenant)
  const { id: clusterId } = await tenantPlatform.newCluster()
  const jobId = await tenantPlatform.submit(clusterId)
  expectStatus(await admin.post('/api/v1/jobs', jobFor(clusterId)), 404, 'cluster_not_found')
  expectStatus(await admin.get(`/api/v1/clusters/${clusterId}`), 404, 'cluster_not_found')
  expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 404, 'cluster_not_found')
  expectStatus(await admin.get(`/api/v1/jobs/${jobId}`), 404, 'job_not_found')
  expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 404, 'job_not_found')
  expectStatus(await admin.get(`/api/v1/users/${tenant.id}`), 404, 'user_not_found')
  expect((await tenantPlatform.job(jobId)).status).toBe('Queued')
})
