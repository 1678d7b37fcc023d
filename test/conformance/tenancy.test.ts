import { assert, expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, describeResponse } from './support/answer.ts'
import { jobFor, submitBatch } from './support/batch.ts'
import type { Client } from './support/client.ts'
import type { Operation } from './support/document.ts'

import type { Platform } from './support/platform.ts'
import { sampleOf } from './support/sample.ts'
import { waitFor } from '../support/wait-for.ts'

const path = '/api/v1/platform/organisations'

/** A resource of the platform organisation for every path parameter: template up to the parameter → id. */
async function resources(platform: Platform): Promise<Record<string, string>> {
  const user = await platform.newUser('OrgAdmin')
  const { client } = user
  const { id: clusterId } = await platform.newCluster()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: [jobFor(clusterId)] })
  const ownPath = '/api/v1/users/me'
  const filter = { name: 'mine', context: 'clusters', filter: {} }
  return {
    '/api/v1/clusters': clusterId,
    '/api/v1/sites': (await platform.newSite()).id,
    '/api/v1/jobs': jobIds[0],
    '/api/v1/jobs/batch': batchId,
    '/api/v1/users': user.id,
    [`${ownPath}/saved-filters`]: expectStatus(await client.post(`${ownPath}/saved-filters`, filter), 201).id,
    [`${ownPath}/tokens`]: expectStatus(await client.post(`${ownPath}/tokens`, { name: 'mine' }), 201).id,
    [`${ownPath}/sessions`]: await waitFor('the session is listed', async () => {
      const { items } = expectStatus(await client.get(`${ownPath}/sessions`), 200)
      return items[0]?.id
    }),
    '/api/v1/webhooks': await newWebhook(platform, client),
  }
}

async function newWebhook(platform: Platform, client: Client): Promise<string> {
  const body = { url: 'https://hooks.example.com/conformance', events: ['platform.setup.*'], enabled: false }
  const { id } = expectStatus(await client.post('/api/v1/webhooks', body), 201)
  platform.removeLater(await platform.admin, `/api/v1/webhooks/${id}`)
  return id
}

/** Requests a resource of another organisation with a valid body. */
function sendRequest(platform: Platform, client: Client, operation: Operation, ids: Record<string, string>) {
  const { method, template, requestBody } = operation
  const prefix = template.slice(0, template.indexOf('/{'))
  const id = ids[prefix]
  assert(id !== undefined, `${template}: add a resource for this path.`)
  const body =
    requestBody && sampleOf(platform.contract.document, requestBody.content['application/json']?.schema ?? {})
  const target = template.replace(/\{\w+\}/, id).replaceAll(/\{\w+\}/g, 'nothing')
  return client.send(method, target, { ...(body && { json: body }) })
}

/** Modules and identity providers belong to the platform: other organisations get 403 before any lookup. */
const isOfPlatform = (template: string): boolean => /^\/api\/(?:v1\/)?(?:modules|platform\/identity)\//.test(template)

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

test('returns 404 for every operation on a resource of another organisation', async ({ platform }) => {
  const ids = await resources(platform)
  const { client } = await platform.tenant
  const named = platform.contract.operations.filter(
    ({ template, security: [required = {}] = [] }) =>
      template.includes('{') && 'bearer' in required && !isOfPlatform(template),
  )
  expect(named.length).toBeGreaterThan(10)
  for (const operation of named) {
    const response = await sendRequest(platform, client, operation, ids)
    expect(response.status, describeResponse(response)).toBe(404)
    expect(/^\w+_not_found$/.test(response.body.error), describeResponse(response)).toBe(true)
  }
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
