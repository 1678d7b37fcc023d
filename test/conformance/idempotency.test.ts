import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { expectStatus, invalidFields } from './support/answer.ts'
import { test } from './support/test.ts'

const clustersPath = '/api/v1/clusters'
const keyed = (key: string) => ({ 'idempotency-key': key })
const isReplayed = ({ headers }: { headers: Headers }): boolean => headers.get('idempotency-replayed') === 'true'

test('replays the first response for the same key and body', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const job = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
  const headers = keyed(randomUUID())
  const firstResponse = await admin.post('/api/v1/jobs', job, headers)
  const { id } = expectStatus(firstResponse, 202)
  expectStatus(await admin.post(`/api/v1/jobs/${id}/cancel`), 202)
  const secondResponse = await admin.post('/api/v1/jobs', job, headers)
  expect(expectStatus(secondResponse, 202)).toEqual(firstResponse.body)
  expect([isReplayed(firstResponse), isReplayed(secondResponse)]).toEqual([false, true])
  // The repeated request created no second job.
  expectStatus(await admin.delete(`${clustersPath}/${clusterId}`), 204)
})

test('rejects a key with another body or operation', async ({ platform, admin }) => {
  const [name, otherName] = [platform.newName(), platform.newName()]
  const headers = keyed(randomUUID())
  const { id } = expectStatus(await admin.post('/api/v1/sites', { name }, headers), 201)
  platform.removeLater(admin, `/api/v1/sites/${id}`)
  expectStatus(await admin.post('/api/v1/sites', { name: otherName }, headers), 422, 'idempotency_key_reused')
  const register = { name: otherName, type: 'Hypervisor' }
  expectStatus(await admin.post(clustersPath, register, headers), 422, 'idempotency_key_reused')
  const created = expectStatus(await admin.post('/api/v1/sites', { name: otherName }), 201)
  expectStatus(await admin.delete(`/api/v1/sites/${created.id}`), 204)
})

test('separates the keys of different users', async ({ platform }) => {
  const headers = keyed(randomUUID())
  const created = []
  for (const { client } of [await platform.newUser('ClusterAdmin'), await platform.newUser('ClusterAdmin')]) {
    const response = await client.post(clustersPath, { name: platform.newName(), type: 'Hypervisor' }, headers)
    const { id } = expectStatus(response, 201)
    platform.removeLater(await platform.admin, `${clustersPath}/${id}`)
    created.push(id)
  }
  expect(created[0]).not.toBe(created[1])
})

test('rejects an invalid key and names it', async ({ platform, admin }) => {
  for (const key of ['', 'two words', 'x'.repeat(201)]) {
    const response = await admin.post('/api/v1/sites', { name: platform.newName() }, keyed(key))
    expect(invalidFields(response)).toEqual(['header /idempotency-key'])
  }
})
