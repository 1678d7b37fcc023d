import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import { entriesOf, recordedCluster } from './support/audit.ts'

import type { Journeys } from './support/platform.ts'

const path = '/api/v1/platform/audit'

export const audit: Journeys = {
  'a change writes an entry by itself: who did what to what, when, from where': async (platform) => {
    const { client, id: userId } = await platform.tenant
    const registration = await client.post('/api/v1/clusters', { name: platform.newName(), type: 'Hypervisor' })
    const { id } = answered(registration, 201)
    const removal = await client.delete(`/api/v1/clusters/${id}`)
    const [removed, registered] = await entriesOf(client, `resource=${id}`, 2)
    assert.ok(removed.seq > registered.seq && removed.at > registered.at)
    assert.notEqual(removed.action, registered.action)
    for (const [entry, { headers }] of [
      [registered, registration],
      [removed, removal],
    ]) {
      assert.deepEqual(entry.actor, { kind: 'user', id: userId })
      assert.equal(entry.traceId, headers.get('x-trace-id'))
      assert.ok(entry.address.length > 0)
    }
  },

  'reading writes no entry, and neither does what was refused': async (platform) => {
    const { client } = await platform.tenant
    const person = await platform.as(await platform.tenant).newPerson('Auditor')
    const entries = await entriesOf(client, `actor=${person.id}`, 1)
    answered(await person.client.get('/api/v1/clusters'), 200)
    answered(await person.client.post('/api/v1/clusters', {}), 403, 'forbidden')
    // By the time a later change is on record, an earlier one would be.
    await recordedCluster(platform, client)
    assert.deepEqual(await entriesOf(client, `actor=${person.id}`, 1), entries)
  },

  'an API token is named beside its user': async (platform) => {
    const { client } = await platform.tenant
    const person = await platform.as(await platform.tenant).newPerson('ClusterAdmin')
    const { id: tokenId, token } = answered(await person.client.post('/api/v1/users/me/tokens', { name: 'x' }), 201)
    const body = { name: platform.newName(), type: 'Hypervisor' }
    const { id } = answered(await platform.anonymous.withToken(token).post('/api/v1/clusters', body), 201)
    platform.leftovers.made(client, `/api/v1/clusters/${id}`)
    const [entry] = await entriesOf(client, `resource=${id}`, 1)
    assert.deepEqual(entry.actor, { kind: 'user', id: person.id, tokenId })
  },

  'entries are found by actor, action, resource and time, alone and together': async (platform) => {
    const { client, id: userId } = await platform.tenant
    const id = await recordedCluster(platform, client)
    const [removed, registered] = await entriesOf(client, `resource=${id}`, 2)
    const { action } = removed
    assert.deepEqual(await entriesOf(client, `resource=${id}&action=${action}`, 1), [removed])
    assert.deepEqual(await entriesOf(client, `resource=${id}&actor=${userId}&action=${action}`, 1), [removed])
    await entriesOf(client, `resource=${id}&actor=user_00000000000000000000000000`, 0)
    for (const filter of [`resource=${id}&`, '']) {
      const read = async (times: string) =>
        answered(await client.get(`${path}?${filter}${times}&pageSize=100`), 200).items.map((entry: any) => entry.id)
      const since = await read(`from=${removed.at}`)
      assert.deepEqual([since.includes(removed.id), since.includes(registered.id)], [true, false])
      const between = await read(`from=${registered.at}&to=${removed.at}`)
      assert.deepEqual([between.includes(removed.id), between.includes(registered.id)], [false, true])
    }
    const far = encodeURIComponent('2000-01-01T02:00:00+02:00')
    assert.equal(answered(await client.get(`${path}?to=${far}`), 200).totalCount, 0)
    assert.deepEqual(refusedFields(await client.get(`${path}?from=yesterday`)), ['query /from'])
  },

  'an administrator of the platform may write an extra entry, which is marked as one': async (platform) => {
    const admin = await platform.admin
    const resource = platform.newName()
    const json = { action: 'change.approved', resource, detail: 'by the board\n"Ω", <b>=1+1</b>' }
    answered(await admin.post(path, json), 204)
    const [entry] = await entriesOf(admin, `resource=${encodeURIComponent(resource)}`, 1)
    const { action, detail, extra } = entry
    assert.deepEqual([action, detail, extra], [json.action, json.detail, true])
    assert.deepEqual(refusedFields(await admin.post(path, {})), ['body /action', 'body /resource', 'body /detail'])
    answered(await (await platform.tenant).client.post(path, json), 403, 'forbidden')
  },

  'nothing changes or removes an entry': async (platform) => {
    const admin = await platform.admin
    const { operations } = platform.contract
    const writing = operations.filter(({ method, template }) => template.startsWith(path) && method !== 'GET')
    assert.deepEqual(
      writing.map(({ method, template }) => `${method} ${template}`),
      [`POST ${path}`],
    )
    const [entry] = answered(await admin.get(path), 200).items
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      for (const place of [path, `${path}/${entry.id}`, `${path}/${entry.seq}`]) {
        answered(await admin.send(method, place), 404, 'route_not_found')
      }
    }
  },
}
