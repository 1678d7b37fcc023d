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
  const person = await platform.newPerson('OrgAdmin')
  const { client } = person
  const { id: clusterId } = await platform.newCluster()
  const { batchId, jobIds } = await submitBatch(platform, { jobs: [jobFor(clusterId)] })
  const own = '/api/v1/users/me'
  const filter = { name: 'mine', context: 'clusters', filter: {} }
  return {
    '/api/v1/clusters': clusterId,
    '/api/v1/sites': (await platform.newSite()).id,
    '/api/v1/jobs': jobIds[0],
    '/api/v1/jobs/batch': batchId,
    '/api/v1/users': person.id,
    [`${own}/saved-filters`]: expectStatus(await client.post(`${own}/saved-filters`, filter), 201).id,
    [`${own}/tokens`]: expectStatus(await client.post(`${own}/tokens`, { name: 'mine' }), 201).id,
    [`${own}/sessions`]: await waitFor('the session is listed', async () => {
      const { items } = expectStatus(await client.get(`${own}/sessions`), 200)
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
function ask(platform: Platform, client: Client, operation: Operation, ids: Record<string, string>) {
  const { method, template, requestBody } = operation
  const prefix = template.slice(0, template.indexOf('/{'))
  const id = ids[prefix]
  assert(id !== undefined, `${template}: add a resource for this path.`)
  const body =
    requestBody && sampleOf(platform.contract.document, requestBody.content['application/json']?.schema ?? {})
  const place = template.replace(/\{\w+\}/, id).replaceAll(/\{\w+\}/g, 'nothing')
  return client.send(method, place, { ...(body && { json: body }) })
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
  const mine = items.find(({ id }) => id === organisationId)
  expect(mine.isPlatform).toBe(false)
  expectStatus(await admin.post(path, { name: mine.name }), 409, 'organisation_name_taken')
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
    const response = await ask(platform, client, operation, ids)
    expect(response.status, describeResponse(response)).toBe(404)
    expect(/^\w+_not_found$/.test(response.body.error), describeResponse(response)).toBe(true)
  }
})

test('hides other organisations from platform administrators', async ({ platform, admin }) => {
  const tenant = await platform.tenant
  const theirs = platform.as(tenant)
  const { id: clusterId } = await theirs.newCluster()
  const jobId = await theirs.submit(clusterId)
  expectStatus(await admin.post('/api/v1/jobs', jobFor(clusterId)), 404, 'cluster_not_found')
  expectStatus(await admin.get(`/api/v1/clusters/${clusterId}`), 404, 'cluster_not_found')
  expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 404, 'cluster_not_found')
  expectStatus(await admin.get(`/api/v1/jobs/${jobId}`), 404, 'job_not_found')
  expectStatus(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 404, 'job_not_found')
  expectStatus(await admin.get(`/api/v1/users/${tenant.id}`), 404, 'user_not_found')
  expect((await theirs.job(jobId)).status).toBe('Queued')
})

test('separates names and sites of organisations', async ({ platform }) => {
  const theirs = platform.as(await platform.tenant)
  const { name } = await platform.newCluster()
  await theirs.newCluster({ name })
  const { id: siteId } = await platform.newSite()
  const { client } = await platform.tenant
  const body = { name: platform.newName(), type: 'Hypervisor', siteId }
  expectStatus(await client.post('/api/v1/clusters', body), 422, 'site_not_found')
})
