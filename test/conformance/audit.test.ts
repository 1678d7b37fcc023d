import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { entriesOf, recordedCluster } from './support/audit.ts'
import { recordedChanges } from './support/recorded-changes.ts'

const path = '/api/v1/platform/audit'

test('records who changed what, when and from where', async ({ platform }) => {
  const { client, id: userId } = await platform.tenant
  const registration = await client.post('/api/v1/clusters', { name: platform.newName(), type: 'Hypervisor' })
  const { id } = expectStatus(registration, 201)
  const removal = await client.delete(`/api/v1/clusters/${id}`)
  const [removed, registered] = await entriesOf(client, `resource=${id}`, 2)
  expect(removed.seq).toBeGreaterThan(registered.seq)
  expect(Date.parse(removed.at)).toBeGreaterThan(Date.parse(registered.at))
  expect(removed.action).not.toBe(registered.action)
  for (const [entry, { headers }] of [
    [registered, registration],
    [removed, removal],
  ]) {
    expect(entry.actor).toEqual({ kind: 'user', id: userId })
    expect(entry.traceId).toBe(headers.get('x-trace-id'))
    expect(entry.address.length).toBeGreaterThan(0)
  }
})

test.for(Object.entries(recordedChanges))('records %s', ([, change], { platform }) => change(platform))

test('records neither reads nor rejected requests', async ({ platform }) => {
  const { client } = await platform.tenant
  const person = await platform.as(await platform.tenant).newPerson('Auditor')
  const entries = await entriesOf(client, `actor=${person.id}`, 1)
  expectStatus(await person.client.get('/api/v1/clusters'), 200)
  expectStatus(await person.client.post('/api/v1/clusters', {}), 403, 'forbidden')
  // Entries keep their order: once a later change is recorded, no earlier one is missing.
  await recordedCluster(platform, client)
  expect(await entriesOf(client, `actor=${person.id}`, 1)).toEqual(entries)
})

test('names the API token beside its user', async ({ platform }) => {
  const { client } = await platform.tenant
  const person = await platform.as(await platform.tenant).newPerson('ClusterAdmin')
  const { id: tokenId, token } = expectStatus(await person.client.post('/api/v1/users/me/tokens', { name: 'x' }), 201)
  const body = { name: platform.newName(), type: 'Hypervisor' }
  const { id } = expectStatus(await platform.anonymous.withToken(token).post('/api/v1/clusters', body), 201)
  platform.removeLater(client, `/api/v1/clusters/${id}`)
  const [entry] = await entriesOf(client, `resource=${id}`, 1)
  expect(entry.actor).toEqual({ kind: 'user', id: person.id, tokenId })
})

test('filters entries by actor, action, resource and time', async ({ platform }) => {
  const { client, id: userId } = await platform.tenant
  const id = await recordedCluster(platform, client)
  const [removed, registered] = await entriesOf(client, `resource=${id}`, 2)
  const { action } = removed
  expect(await entriesOf(client, `resource=${id}&action=${action}`, 1)).toEqual([removed])
  expect(await entriesOf(client, `resource=${id}&actor=${userId}&action=${action}`, 1)).toEqual([removed])
  await entriesOf(client, `resource=${id}&actor=user_00000000000000000000000000`, 0)
  for (const filter of [`resource=${id}&`, '']) {
    const read = async (times: string) =>
      expectStatus(await client.get(`${path}?${filter}${times}&pageSize=100`), 200).items.map((entry: any) => entry.id)
    const since = await read(`from=${removed.at}`)
    expect([since.includes(removed.id), since.includes(registered.id)]).toEqual([true, false])
    const between = await read(`from=${registered.at}&to=${removed.at}`)
    expect([between.includes(removed.id), between.includes(registered.id)]).toEqual([false, true])
  }
  const far = encodeURIComponent('2000-01-01T02:00:00+02:00')
  expect(expectStatus(await client.get(`${path}?to=${far}`), 200).totalCount).toBe(0)
  expect(invalidFields(await client.get(`${path}?from=yesterday`))).toEqual(['query /from'])
})

test('lets a platform administrator add an entry and marks it as extra', async ({ platform, admin }) => {
  const resource = platform.newName()
  const json = { action: 'change.approved', resource, detail: 'by the board\n"Ω", <b>=1+1</b>' }
  expectStatus(await admin.post(path, json), 204)
  const [entry] = await entriesOf(admin, `resource=${encodeURIComponent(resource)}`, 1)
  const { action, detail, extra } = entry
  expect([action, detail, extra]).toEqual([json.action, json.detail, true])
  expect(invalidFields(await admin.post(path, {}))).toEqual(['body /action', 'body /resource', 'body /detail'])
  expectStatus(await (await platform.tenant).client.post(path, json), 403, 'forbidden')
})

test('has no operation that changes or removes an entry', async ({ platform, admin }) => {
  const { operations } = platform.contract
  const writing = operations.filter(({ method, template }) => template.startsWith(path) && method !== 'GET')
  expect(writing.map(({ method, template }) => `${method} ${template}`)).toEqual([`POST ${path}`])
  const [entry] = expectStatus(await admin.get(path), 200).items
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    for (const place of [path, `${path}/${entry.id}`, `${path}/${entry.seq}`]) {
      expectStatus(await admin.send(method, place), 404, 'route_not_found')
    }
  }
})
