import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus, invalidFields } from './support/answer.ts'

const path = '/api/v1/clusters'

test('registers a cluster as Pending, readable immediately', async ({ platform }) => {
  const name = platform.newName()
  const registered = await platform.newCluster({ name, type: 'CloudLocal' })
  const { registeredAt, ...cluster } = await platform.cluster(registered.id)
  expect(registeredAt).toBe(registered.registeredAt)
  expect(cluster).toEqual({
    id: registered.id,
    name,
    type: 'CloudLocal',
    status: 'Pending',
    nodeCount: 0,
    lastSeenAt: null,
    nodes: [],
    relay: null,
  })
})

test('returns a relay command that keeps the token out of the arguments', async ({ platform }) => {
  const { relayCommand, enrollmentToken } = await platform.newCluster()
  expect(relayCommand).toMatch(/^curl \S.*\/relay\/relay\.mjs /)
  const [environment = '', programArguments = ''] = relayCommand.split(/ node /)
  expect(environment).toContain(`PLAT_ENROLLMENT_TOKEN=${enrollmentToken}`)
  expect(programArguments).not.toContain(enrollmentToken)
})

test('trims names of 3 to 64 characters in any script', async ({ platform, admin }) => {
  const suffix = platform.newName()
  for (const name of [suffix.slice(-3), suffix.padEnd(64, 'x'), `Ω 集群 ${suffix}`]) {
    // Another run may use a name of three characters.
    const answer = await admin.post(path, { name: ` ${name} `, type: 'Hypervisor' })
    if (answer.status === 409) continue
    const { id } = expectStatus(answer, 201)
    expect(answer.body.name).toBe(name)
    expectStatus(await admin.delete(`${path}/${id}`), 204)
  }
})

test('rejects invalid fields and registers nothing', async ({ platform, admin }) => {
  const name = platform.newName()
  const wrong: [object, string[]][] = [
    [{}, ['body /name', 'body /type']],
    [{ name: 'ab', type: 'Hypervisor' }, ['body /name']],
    [{ name: 'x'.repeat(65), type: 'Hypervisor' }, ['body /name']],
    [{ name: 'line\nbreak', type: 'Hypervisor' }, ['body /name']],
    [{ name: ['text'], type: 'Hypervisor' }, ['body /name']],
    [{ name, type: 'hypervisor' }, ['body /type']],
    [{ name, type: 'Hypervisor', siteId: 7 }, ['body /siteId']],
  ]
  for (const [json, fields] of wrong) expect(invalidFields(await admin.post(path, json))).toEqual(fields)
  for (const siteId of ['nothing', 'site_00000000000000000000000000']) {
    expectStatus(await admin.post(path, { name, type: 'Hypervisor', siteId }), 422, 'site_not_found')
  }
  await platform.newCluster({ name })
})

test('registers one cluster when 16 requests race for a name in any case', async ({ platform, admin }) => {
  const name = platform.newName()
  const names = Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? name : name.toUpperCase()))
  const answers = await Promise.all(names.map((each) => admin.post(path, { name: each, type: 'Hypervisor' })))
  const winners = answers.filter(({ status }) => status === 201)
  expect(winners.length).toBe(1)
  for (const answer of answers) if (!winners.includes(answer)) expectStatus(answer, 409, 'cluster_name_taken')
  expectStatus(await admin.delete(`${path}/${winners[0]?.body.id}`), 204)
})

test('renames a cluster, frees the old name and reserves the new one', async ({ platform, admin }) => {
  const [first, second] = [await platform.newCluster(), await platform.newCluster()]
  const name = platform.newName()
  const renamed = expectStatus(await admin.patch(`${path}/${first.id}`, { name }), 200)
  expect([renamed.id, renamed.name, renamed.type]).toEqual([first.id, name, first.type])
  expectStatus(await admin.patch(`${path}/${second.id}`, { name: name.toUpperCase() }), 409, 'cluster_name_taken')
  expectStatus(await admin.patch(`${path}/${second.id}`, { name: first.name }), 200)
  expect((await platform.cluster(second.id)).name).toBe(first.name)
})

test('moves a cluster into and out of a site and ignores an empty change', async ({ platform, admin }) => {
  const { id: siteId } = await platform.newSite()
  const { id } = await platform.newCluster()
  const before = expectStatus(await admin.patch(`${path}/${id}`, {}), 200)
  expect(expectStatus(await admin.patch(`${path}/${id}`, { siteId }), 200).siteId).toBe(siteId)
  expectStatus(await admin.patch(`${path}/${id}`, { siteId: 'nothing' }), 422, 'site_not_found')
  expect(expectStatus(await admin.patch(`${path}/${id}`, { siteId: null }), 200)).toEqual(before)
  expect(invalidFields(await admin.patch(`${path}/${id}`, { name: 'ab' }))).toEqual(['body /name'])
})

test('returns 404 for every operation on an unknown cluster', async ({ admin: client }) => {
  for (const id of [
    'nothing',
    'clus_00000000000000000000000000',
    'job_00000000000000000000000000',
    'CLUS_%F0%9F%92%A5',
  ]) {
    expectStatus(await client.get(`${path}/${id}`), 404, 'cluster_not_found')
    expectStatus(await client.patch(`${path}/${id}`, { name: 'any name' }), 404, 'cluster_not_found')
    expectStatus(await client.delete(`${path}/${id}`), 404, 'cluster_not_found')
    expectStatus(await client.post(`${path}/${id}/enrollment-token`), 404, 'cluster_not_found')
  }
})

test('removing a cluster revokes its enrollment token and frees its name', async ({ platform, admin }) => {
  const { id, name, enrollmentToken } = await platform.newCluster()
  expectStatus(await admin.delete(`${path}/${id}`), 204)
  expectStatus(await admin.get(`${path}/${id}`), 404, 'cluster_not_found')
  expectStatus(await admin.delete(`${path}/${id}`), 404, 'cluster_not_found')
  await expect(platform.enroll(enrollmentToken)).rejects.toThrow(/enrollment_token_invalid/)
  await platform.newCluster({ name })
})
