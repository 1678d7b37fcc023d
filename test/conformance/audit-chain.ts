import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import { entriesOf, exportParts, firstBroken, parseCsv, parseLines, recordedCluster, startOf } from './support/audit.ts'
import type { Client } from './support/client.ts'
import { newUserBody } from './support/person.ts'
import type { Journeys } from './support/platform.ts'

const path = '/api/v1/platform/audit'

const exported = async (client: Client, query = 'format=ndjson') =>
  parseLines((await exportParts(client, `${path}/export?${query}`)).join(''))

export const auditChain: Journeys = {
  'whoever holds an export verifies the chain alone, and finds whatever was changed in it': async (platform) => {
    const { client, organisationId } = await platform.tenant
    await recordedCluster(platform, client)
    const start = startOf(organisationId)
    const entries = await exported(client)
    assert.ok(entries.length > 2)
    assert.equal(firstBroken(start, entries), undefined)
    const changed = entries.with(1, { ...entries[1], detail: `${entries[1].detail}.` })
    assert.equal(firstBroken(start, changed), 2)
    assert.equal(firstBroken(start, entries.toSpliced(1, 1)), 2)
    assert.equal(firstBroken(start, entries.toSpliced(1, 2, entries[2], entries[1])), 2)
    assert.equal(firstBroken(startOf('org_00000000000000000000000000'), entries), 1)
  },

  'the platform verifies the chain, up to the hash that an export ends with': async (platform, report) => {
    const { client, organisationId } = await platform.tenant
    let found = answered(await client.get(`${path}/verify`), 200)
    for (; found.next !== undefined; found = answered(await client.get(`${path}/verify?after=${found.next}`), 200)) {
      assert.equal(found.valid, true)
    }
    assert.deepEqual([found.valid, found.firstBroken], [true, undefined])
    const copy = await exported(client)
    assert.equal(firstBroken(startOf(organisationId), copy), undefined)
    assert.equal(copy[found.headSeq - 1].hash, found.headHash)
    report.diagnostic(`${copy.length} entries`)
  },

  'the end of a long trail is verified without its beginning, part by part': async (platform, report) => {
    const admin = await platform.admin
    const { headSeq } = answered(await admin.get(`${path}/verify`), 200)
    const seq = Math.max(0, headSeq - 1500)
    const { valid, entries } = answered(await admin.get(`${path}/verify?after=${seq}`), 200)
    assert.ok(valid && entries >= headSeq - seq)
    const parts = await exportParts(admin, `${path}/export?after=${seq}`)
    const copy = parseLines(parts.join(''))
    assert.equal(firstBroken({ seq, previousHash: copy[0].previousHash }, copy), undefined)
    assert.ok(copy.length >= headSeq - seq)
    report.diagnostic(`${copy.length} entries in ${parts.length} parts`)
  },

  'an export can be taken up anywhere': async (platform) => {
    const { client } = await platform.tenant
    await recordedCluster(platform, client)
    const entries = await exported(client)
    const from = entries.length - 2
    assert.deepEqual((await exported(client, `format=ndjson&after=${from}`)).slice(0, 2), entries.slice(from))
    assert.deepEqual(await exported(client, 'after=999999999'), [])
    assert.deepEqual(refusedFields(await client.get(`${path}/export?format=xml`)), ['query /format'])
    assert.deepEqual(refusedFields(await client.get(`${path}/export?after=-1`)), ['query /after'])
  },

  'an export as CSV holds the same, verifies the same, and gives spreadsheets no formula': async (platform) => {
    const admin = await platform.admin
    const resource = platform.newName()
    const details = ['=1+1', '+1', '-1', '@x', "'quoted", '"text",\nand more', 'Ω, 💥', '']
    for (const detail of details) answered(await admin.post(path, { action: '=x', resource, detail }), 204)
    const written = await entriesOf(admin, `resource=${encodeURIComponent(resource)}`, details.length)
    const after = written.at(-1).seq - 1
    const csv = (await exportParts(admin, `${path}/export?format=csv&after=${after}`)).join('')
    const header = (await exportParts(admin, `${path}/export?format=csv&after=0`))[0]?.split('\r\n', 1)[0] ?? ''
    assert.doesNotMatch(csv, /(?:^|,)"?[=+@]/m)
    const entries = parseCsv(`${header}\r\n${csv}`)
    const lines = await exported(admin, `after=${after}`)
    assert.deepEqual(entries.slice(0, details.length), lines.slice(0, details.length))
    assert.equal(firstBroken({ seq: after, previousHash: entries[0].previousHash }, entries), undefined)
    assert.deepEqual(
      entries.filter((entry) => entry.resource === resource).map(({ detail }) => detail),
      details,
    )
  },

  'no secret is on record': async (platform) => {
    const { client } = await platform.tenant
    const body = newUserBody(['Viewer'])
    const { id } = answered(await client.post('/api/v1/users', body), 201)
    platform.leftovers.made(client, `/api/v1/users/${id}`)
    const { token, id: tokenId } = answered(await client.post('/api/v1/users/me/tokens', { name: 'x' }), 201)
    const { enrollmentToken, id: clusterId } = await platform.as(await platform.tenant).newCluster()
    for (const resource of [id, tokenId, clusterId]) await entriesOf(client, `resource=${resource}`, 1)
    const text = (await exportParts(client, `${path}/export`)).join('')
    for (const secret of [body.password, token, enrollmentToken]) assert.ok(!text.includes(secret))
  },
}
