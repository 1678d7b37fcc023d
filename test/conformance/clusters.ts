import assert from 'node:assert/strict'
import { answered, refusedFields } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'

const path = '/api/v1/clusters'

export const clusters: Journeys = {
  'a registered cluster is Pending, without relay and nodes, and can be read at once': async (platform) => {
    const name = platform.newName()
    const registered = await platform.newCluster({ name, type: 'CloudLocal' })
    const { registeredAt, ...cluster } = await platform.cluster(registered.id)
    assert.equal(registeredAt, registered.registeredAt)
    assert.deepEqual(cluster, {
      id: registered.id,
      name,
      type: 'CloudLocal',
      status: 'Pending',
      nodeCount: 0,
      lastSeenAt: null,
      nodes: [],
      relay: null,
    })
  },

  'the relay command fetches the relay program, and keeps the token out of its arguments': async (platform) => {
    const { relayCommand, enrollmentToken } = await platform.newCluster()
    assert.match(relayCommand, /^curl \S.*\/relay\/relay\.mjs /)
    const [environment = '', programArguments = ''] = relayCommand.split(/ node /)
    assert.ok(environment.includes(`PLAT_ENROLLMENT_TOKEN=${enrollmentToken}`))
    assert.ok(!programArguments.includes(enrollmentToken))
  },

  'names are trimmed, from 3 to 64 characters long, in any script': async (platform) => {
    const suffix = platform.newName()
    for (const name of [suffix.slice(-3), suffix.padEnd(64, 'x'), `Ω 集群 ${suffix}`]) {
      // Three characters are few: another run may have them.
      const answer = await (await platform.admin).post(path, { name: ` ${name} `, type: 'Hypervisor' })
      if (answer.status === 409) continue
      const { id } = answered(answer, 201)
      assert.equal(answer.body.name, name)
      answered(await (await platform.admin).delete(`${path}/${id}`), 204)
    }
  },

  'fields that are wrong are named, and nothing is registered': async (platform) => {
    const admin = await platform.admin
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
    for (const [json, fields] of wrong) assert.deepEqual(refusedFields(await admin.post(path, json)), fields)
    for (const siteId of ['nothing', 'site_00000000000000000000000000']) {
      answered(await admin.post(path, { name, type: 'Hypervisor', siteId }), 422, 'site_not_found')
    }
    await platform.newCluster({ name })
  },

  'names are unique whatever their case: of sixteen registrations at once one wins': async (platform) => {
    const admin = await platform.admin
    const name = platform.newName()
    const names = Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? name : name.toUpperCase()))
    const answers = await Promise.all(names.map((each) => admin.post(path, { name: each, type: 'Hypervisor' })))
    const winners = answers.filter(({ status }) => status === 201)
    assert.equal(winners.length, 1)
    for (const answer of answers) if (!winners.includes(answer)) answered(answer, 409, 'cluster_name_taken')
    answered(await admin.delete(`${path}/${winners[0]?.body.id}`), 204)
  },

  'a cluster is renamed; its old name is free, its new one taken': async (platform) => {
    const admin = await platform.admin
    const [first, second] = [await platform.newCluster(), await platform.newCluster()]
    const name = platform.newName()
    const renamed = answered(await admin.patch(`${path}/${first.id}`, { name }), 200)
    assert.deepEqual([renamed.id, renamed.name, renamed.type], [first.id, name, first.type])
    answered(await admin.patch(`${path}/${second.id}`, { name: name.toUpperCase() }), 409, 'cluster_name_taken')
    answered(await admin.patch(`${path}/${second.id}`, { name: first.name }), 200)
    assert.equal((await platform.cluster(second.id)).name, first.name)
  },

  'a cluster moves to a site and out of it; a change of nothing changes nothing': async (platform) => {
    const admin = await platform.admin
    const { id: siteId } = await platform.newSite()
    const { id } = await platform.newCluster()
    const before = answered(await admin.patch(`${path}/${id}`, {}), 200)
    assert.equal(answered(await admin.patch(`${path}/${id}`, { siteId }), 200).siteId, siteId)
    answered(await admin.patch(`${path}/${id}`, { siteId: 'nothing' }), 422, 'site_not_found')
    assert.deepEqual(answered(await admin.patch(`${path}/${id}`, { siteId: null }), 200), before)
    assert.deepEqual(refusedFields(await admin.patch(`${path}/${id}`, { name: 'ab' })), ['body /name'])
  },

  'an identifier that names no cluster answers 404 everywhere, whatever it looks like': async ({ admin }) => {
    const client = await admin
    for (const id of [
      'nothing',
      'clus_00000000000000000000000000',
      'job_00000000000000000000000000',
      'CLUS_%F0%9F%92%A5',
    ]) {
      answered(await client.get(`${path}/${id}`), 404, 'cluster_not_found')
      answered(await client.patch(`${path}/${id}`, { name: 'any name' }), 404, 'cluster_not_found')
      answered(await client.delete(`${path}/${id}`), 404, 'cluster_not_found')
      answered(await client.post(`${path}/${id}/enrollment-token`), 404, 'cluster_not_found')
    }
  },

  'a removed cluster is gone, with its enrollment token, and its name is free': async (platform) => {
    const admin = await platform.admin
    const { id, name, enrollmentToken } = await platform.newCluster()
    answered(await admin.delete(`${path}/${id}`), 204)
    answered(await admin.get(`${path}/${id}`), 404, 'cluster_not_found')
    answered(await admin.delete(`${path}/${id}`), 404, 'cluster_not_found')
    await assert.rejects(platform.enroll(enrollmentToken), /enrollment_token_invalid/)
    await platform.newCluster({ name })
  },
}
