import { expect } from 'vitest'
import { expectStatus, invalidFields } from './support/answer.ts'
import {
  waitForEntries,
  exportParts,
  firstInvalidSeq,
  parseCsv,
  parseLines,
  recordedCluster,
  chainStartOf,
} from './support/audit.ts'
import type { Client } from './support/client.ts'
import { newUserBody } from './support/person.ts'
import { recordedChanges } from './support/recorded-changes.ts'
import { test } from './support/test.ts'

const path = '/api/v1/platform/audit'

test('records who changed what, when and from where', async ({ platform }) => {
  const { client, id: userId } = await platform.tenant
  const registration = await client.post('/api/v1/clusters', { name: platform.newName(), type: 'Hypervisor' })
  const { id } = expectStatus(registration, 201)
  const removal = await client.delete(`/api/v1/clusters/${id}`)
  const [removed, registered] = await waitForEntries(client, `resource=${id}`, 2)
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

test('records denied requests, but no reads', async ({ platform }) => {
  const { client } = await platform.tenant
  const user = await platform.as(await platform.tenant).newUser('Auditor')
  const entries = await waitForEntries(client, `actor=${user.id}`, 1)
  expectStatus(await user.client.get('/api/v1/clusters'), 200)
  expectStatus(await user.client.post('/api/v1/clusters', {}), 403, 'forbidden')
  // Entries keep their order: once a later change is recorded, no earlier one is missing.
  await recordedCluster(platform, client)
  const [denied, ...others] = await waitForEntries(client, `actor=${user.id}`, 2)
  expect(denied).toMatchObject({ action: 'access.denied', resource: 'POST /api/v1/clusters' })
  expect(others).toEqual(entries)
})

test('names the API token beside its user', async ({ platform }) => {
  const { client } = await platform.tenant
  const user = await platform.as(await platform.tenant).newUser('ClusterAdmin')
  const { id: tokenId, token } = expectStatus(await user.client.post('/api/v1/users/me/tokens', { name: 'x' }), 201)
  const body = { name: platform.newName(), type: 'Hypervisor' }
  const { id } = expectStatus(await platform.anonymous.withToken(token).post('/api/v1/clusters', body), 201)
  platform.removeLater(client, `/api/v1/clusters/${id}`)
  const [entry] = await waitForEntries(client, `resource=${id}`, 1)
  expect(entry.actor).toEqual({ kind: 'user', id: user.id, tokenId })
})

test('lets a platform administrator add an entry and marks it as extra', async ({ platform, admin }) => {
  const resource = platform.newName()
  const json = { action: 'change.approved', resource, detail: 'by the board\n"Ω", <b>=1+1</b>' }
  expectStatus(await admin.post(path, json), 204)
  const [entry] = await waitForEntries(admin, `resource=${encodeURIComponent(resource)}`, 1)
  const { action, detail, extra } = entry
  expect([action, detail, extra]).toEqual([json.action, json.detail, true])
  expect(invalidFields(await admin.post(path, {}))).toEqual(['body /action', 'body /resource', 'body /detail'])
  expectStatus(await (await platform.tenant).client.post(path, json), 403, 'forbidden')
})

test('no operation changes or removes an audit entry', async ({ platform, admin }) => {
  const { operations } = platform.contract
  const writing = operations.filter(({ method, template }) => template.startsWith(path) && method !== 'GET')
  expect(writing.map(({ method, template }) => `${method} ${template}`)).toEqual([`POST ${path}`])
  const [entry] = expectStatus(await admin.get(path), 200).items
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    expectStatus(await admin.send(method, path), 405, 'method_not_allowed')
    for (const entryPath of [`${path}/${entry.id}`, `${path}/${entry.seq}`]) {
      expectStatus(await admin.send(method, entryPath), 404, 'route_not_found')
    }
  }
})

const exportAudit = async (client: Client, query = 'format=ndjson') =>
  parseLines((await exportParts(client, `${path}/export?${query}`)).join(''))

test('an export verifies offline, and any change to it is detected', async ({ platform }) => {
  const { client, organisationId } = await platform.tenant
  await recordedCluster(platform, client)
  const start = chainStartOf(organisationId)
  const entries = await exportAudit(client)
  expect(entries.length).toBeGreaterThan(2)
  expect(firstInvalidSeq(start, entries)).toBeUndefined()
  const changedEntries = entries.with(1, { ...entries[1], detail: `${entries[1].detail}.` })
  expect(firstInvalidSeq(start, changedEntries)).toBe(2)
  expect(firstInvalidSeq(start, entries.toSpliced(1, 1))).toBe(2)
  expect(firstInvalidSeq(start, entries.toSpliced(1, 2, entries[2], entries[1]))).toBe(2)
  expect(firstInvalidSeq(chainStartOf('org_00000000000000000000000000'), entries)).toBe(1)
})

test('verifies the chain up to the last hash of an export', async ({ platform }) => {
  const { client, organisationId } = await platform.tenant
  let verification = expectStatus(await client.get(`${path}/verify`), 200)
  for (
    ;
    verification.next !== undefined;
    verification = expectStatus(await client.get(`${path}/verify?after=${verification.next}`), 200)
  ) {
    expect(verification.valid).toBe(true)
  }
  expect([verification.valid, verification.firstBroken]).toEqual([true, undefined])
  const copy = await exportAudit(client)
  expect(firstInvalidSeq(chainStartOf(organisationId), copy)).toBeUndefined()
  expect(copy[verification.headSeq - 1].hash).toBe(verification.headHash)
})

test('exports CSV with the same entries and no spreadsheet formulas', async ({ platform, admin }) => {
  const resource = platform.newName()
  const details = ['=1+1', '+1', '-1', '@x', "'quoted", '"text",\nand more', 'Ω, 💥', '']
  for (const detail of details) expectStatus(await admin.post(path, { action: '=x', resource, detail }), 204)
  const writtenEntries = await waitForEntries(admin, `resource=${encodeURIComponent(resource)}`, details.length)
  const lastSeqBefore = writtenEntries.at(-1).seq - 1
  const csv = (await exportParts(admin, `${path}/export?format=csv&after=${lastSeqBefore}`)).join('')
  const header = (await exportParts(admin, `${path}/export?format=csv&after=0`))[0]?.split('\r\n', 1)[0] ?? ''
  expect(csv).not.toMatch(/(?:^|,)"?[=+@]/m)
  const entries = parseCsv(`${header}\r\n${csv}`)
  const lines = await exportAudit(admin, `after=${lastSeqBefore}`)
  expect(entries.slice(0, details.length)).toEqual(lines.slice(0, details.length))
  expect(firstInvalidSeq({ seq: lastSeqBefore, previousHash: entries[0].previousHash }, entries)).toBeUndefined()
  expect(entries.filter((entry) => entry.resource === resource).map(({ detail }) => detail)).toEqual(details)
})

test('never records a secret', async ({ platform }) => {
  const { client } = await platform.tenant
  const body = newUserBody(['Viewer'])
  const { id } = expectStatus(await client.post('/api/v1/users', body), 201)
  platform.removeLater(client, `/api/v1/users/${id}`)
  const { token, id: tokenId } = expectStatus(await client.post('/api/v1/users/me/tokens', { name: 'x' }), 201)
  const { enrollmentToken, id: clusterId } = await platform.as(await platform.tenant).newCluster()
  for (const resource of [id, tokenId, clusterId]) await waitForEntries(client, `resource=${resource}`, 1)
  const text = (await exportParts(client, `${path}/export`)).join('')
  for (const secret of [body.password, token, enrollmentToken]) expect(text).not.toContain(secret)
})
