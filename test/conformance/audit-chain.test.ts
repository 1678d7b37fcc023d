import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'
import { entriesOf, exportParts, firstBroken, parseCsv, parseLines, recordedCluster, startOf } from './support/audit.ts'
import type { Client } from './support/client.ts'
import { newUserBody } from './support/person.ts'

const path = '/api/v1/platform/audit'

const exported = async (client: Client, query = 'format=ndjson') =>
  parseLines((await exportParts(client, `${path}/export?${query}`)).join(''))

test('an export verifies offline, and any change to it is detected', async ({ platform }) => {
  const { client, organisationId } = await platform.tenant
  await recordedCluster(platform, client)
  const start = startOf(organisationId)
  const entries = await exported(client)
  expect(entries.length).toBeGreaterThan(2)
  expect(firstBroken(start, entries)).toBeUndefined()
  const changed = entries.with(1, { ...entries[1], detail: `${entries[1].detail}.` })
  expect(firstBroken(start, changed)).toBe(2)
  expect(firstBroken(start, entries.toSpliced(1, 1))).toBe(2)
  expect(firstBroken(start, entries.toSpliced(1, 2, entries[2], entries[1]))).toBe(2)
  expect(firstBroken(startOf('org_00000000000000000000000000'), entries)).toBe(1)
})

test('verifies the chain up to the last hash of an export', async ({ platform }) => {
  const { client, organisationId } = await platform.tenant
  let found = expectStatus(await client.get(`${path}/verify`), 200)
  for (; found.next !== undefined; found = expectStatus(await client.get(`${path}/verify?after=${found.next}`), 200)) {
    expect(found.valid).toBe(true)
  }
  expect([found.valid, found.firstBroken]).toEqual([true, undefined])
  const copy = await exported(client)
  expect(firstBroken(startOf(organisationId), copy)).toBeUndefined()
  expect(copy[found.headSeq - 1].hash).toBe(found.headHash)
})

test('verifies and exports only the end of a long trail', async ({ admin }) => {
  const { headSeq } = expectStatus(await admin.get(`${path}/verify`), 200)
  const seq = Math.max(0, headSeq - 1500)
  const { valid, entries } = expectStatus(await admin.get(`${path}/verify?after=${seq}`), 200)
  expect(valid).toBe(true)
  expect(entries).toBeGreaterThanOrEqual(headSeq - seq)
  const parts = await exportParts(admin, `${path}/export?after=${seq}`)
  const copy = parseLines(parts.join(''))
  expect(firstBroken({ seq, previousHash: copy[0].previousHash }, copy)).toBeUndefined()
  expect(copy.length).toBeGreaterThanOrEqual(headSeq - seq)
})

test('resumes an export after any entry', async ({ platform }) => {
  const { client } = await platform.tenant
  await recordedCluster(platform, client)
  const entries = await exported(client)
  const from = entries.length - 2
  expect((await exported(client, `format=ndjson&after=${from}`)).slice(0, 2)).toEqual(entries.slice(from))
  expect(await exported(client, 'after=999999999')).toEqual([])
  expect(invalidFields(await client.get(`${path}/export?format=xml`))).toEqual(['query /format'])
  expect(invalidFields(await client.get(`${path}/export?after=-1`))).toEqual(['query /after'])
})

test('exports CSV with the same entries and no spreadsheet formulas', async ({ platform, admin }) => {
  const resource = platform.newName()
  const details = ['=1+1', '+1', '-1', '@x', "'quoted", '"text",\nand more', 'Ω, 💥', '']
  for (const detail of details) expectStatus(await admin.post(path, { action: '=x', resource, detail }), 204)
  const written = await entriesOf(admin, `resource=${encodeURIComponent(resource)}`, details.length)
  const after = written.at(-1).seq - 1
  const csv = (await exportParts(admin, `${path}/export?format=csv&after=${after}`)).join('')
  const header = (await exportParts(admin, `${path}/export?format=csv&after=0`))[0]?.split('\r\n', 1)[0] ?? ''
  expect(csv).not.toMatch(/(?:^|,)"?[=+@]/m)
  const entries = parseCsv(`${header}\r\n${csv}`)
  const lines = await exported(admin, `after=${after}`)
  expect(entries.slice(0, details.length)).toEqual(lines.slice(0, details.length))
  expect(firstBroken({ seq: after, previousHash: entries[0].previousHash }, entries)).toBeUndefined()
  expect(entries.filter((entry) => entry.resource === resource).map(({ detail }) => detail)).toEqual(details)
})

test('never records a secret', async ({ platform }) => {
  const { client } = await platform.tenant
  const body = newUserBody(['Viewer'])
  const { id } = expectStatus(await client.post('/api/v1/users', body), 201)
  platform.removeLater(client, `/api/v1/users/${id}`)
  const { token, id: tokenId } = expectStatus(await client.post('/api/v1/users/me/tokens', { name: 'x' }), 201)
  const { enrollmentToken, id: clusterId } = await platform.as(await platform.tenant).newCluster()
  for (const resource of [id, tokenId, clusterId]) await entriesOf(client, `resource=${resource}`, 1)
  const text = (await exportParts(client, `${path}/export`)).join('')
  for (const secret of [body.password, token, enrollmentToken]) expect(text).not.toContain(secret)
})
