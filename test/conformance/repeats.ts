import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'

const clustersPath = '/api/v1/clusters'
const keyed = (key: string) => ({ 'idempotency-key': key })
const isReplayed = ({ headers }: { headers: Headers }): boolean => headers.get('idempotency-replayed') === 'true'

export const repeats: Journeys = {
  'a repeat with the same key and body does nothing, and gets the first answer': async (platform) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const job = { clusterId, type: 'InvokeScript', payload: { script: 'uname' } }
    const headers = keyed(randomUUID())
    const first = await admin.post('/api/v1/jobs', job, headers)
    const { id } = answered(first, 202)
    answered(await admin.post(`/api/v1/jobs/${id}/cancel`), 202)
    const second = await admin.post('/api/v1/jobs', job, headers)
    assert.deepEqual(answered(second, 202), first.body)
    assert.deepEqual([isReplayed(first), isReplayed(second)], [false, true])
    // No second job is active.
    answered(await admin.delete(`${clustersPath}/${clusterId}`), 204)
  },

  'of eight with one key at once one does it, and all get its answer': async (platform) => {
    const admin = await platform.admin
    const body = { name: platform.newName(), type: 'Hypervisor' }
    const headers = keyed(randomUUID())
    const answers = await Promise.all(Array.from({ length: 8 }, () => admin.post(clustersPath, body, headers)))
    const [first] = answers.map((answer) => answered(answer, 201))
    for (const { body: made } of answers) assert.deepEqual(made, first)
    // The token of the answer is the one that works.
    const { id, enrollmentToken } = first
    platform.leftovers.made(admin, `${clustersPath}/${id}`)
    assert.equal((await platform.enroll(enrollmentToken)).clusterId, id)
  },

  'the same key with another body, or for another operation, is refused, and nothing is done': async (platform) => {
    const admin = await platform.admin
    const [name, other] = [platform.newName(), platform.newName()]
    const headers = keyed(randomUUID())
    const { id } = answered(await admin.post('/api/v1/sites', { name }, headers), 201)
    platform.leftovers.made(admin, `/api/v1/sites/${id}`)
    answered(await admin.post('/api/v1/sites', { name: other }, headers), 422, 'idempotency_key_reused')
    const register = { name: other, type: 'Hypervisor' }
    answered(await admin.post(clustersPath, register, headers), 422, 'idempotency_key_reused')
    const made = answered(await admin.post('/api/v1/sites', { name: other }), 201)
    answered(await admin.delete(`/api/v1/sites/${made.id}`), 204)
  },

  'what was refused may be corrected under its key': async (platform) => {
    const admin = await platform.admin
    const headers = keyed(randomUUID())
    const { id, name } = await platform.newSite()
    answered(await admin.post('/api/v1/sites', { name: 7 }, headers), 400, 'validation_failed')
    answered(await admin.post('/api/v1/sites', { name }, headers), 409, 'site_name_taken')
    answered(await admin.delete(`/api/v1/sites/${id}`), 204)
    const made = answered(await admin.post('/api/v1/sites', { name }, headers), 201)
    platform.leftovers.made(admin, `/api/v1/sites/${made.id}`)
  },

  'keys of different users have nothing to do with each other': async (platform) => {
    const headers = keyed(randomUUID())
    const made = []
    for (const { client } of [await platform.newPerson('ClusterAdmin'), await platform.newPerson('ClusterAdmin')]) {
      const answer = await client.post(clustersPath, { name: platform.newName(), type: 'Hypervisor' }, headers)
      const { id } = answered(answer, 201)
      platform.leftovers.made(await platform.admin, `${clustersPath}/${id}`)
      made.push(id)
    }
    assert.notEqual(made[0], made[1])
  },

  'a secret that is shown once is in the repeated answer, too': async (platform) => {
    const { client } = await platform.newPerson('Viewer')
    const headers = keyed(randomUUID())
    const body = { name: 'nightly backup' }
    const first = answered(await client.post('/api/v1/users/me/tokens', body, headers), 201)
    assert.deepEqual(answered(await client.post('/api/v1/users/me/tokens', body, headers), 201), first)
    assert.equal(answered(await client.get('/api/v1/users/me/tokens'), 200).items.length, 1)
    answered(await platform.anonymous.withToken(first.token).get('/api/v1/auth/me'), 200)
  },

  'what is no key is refused and named': async (platform) => {
    const admin = await platform.admin
    for (const key of ['', 'two words', 'x'.repeat(201)]) {
      const answer = await admin.post('/api/v1/sites', { name: platform.newName() }, keyed(key))
      assert.deepEqual(refusedFields(answer), ['header /idempotency-key'])
    }
  },
}
