import { answered } from './support/answer.ts'
import { entriesOf } from './support/audit.ts'
import type { Client } from './support/client.ts'
import type { Person } from './support/person.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { until } from './support/until.ts'

/** In an organisation of its own, where nothing else happens meanwhile: each change leads to its record by itself. */
const inTenant = async (platform: Platform): Promise<[theirs: Platform, client: Client]> => {
  const tenant = await platform.tenant
  return [platform.as(tenant), tenant.client]
}

/** Makes something, finds it, and removes it; each of the two is on record before anything else is done. */
async function makeAndRemove(client: Client, reader: Client, path: string, json: object): Promise<void> {
  const { id } = answered(await client.post(path, json), 201)
  await entriesOf(reader, `resource=${id}`, 1)
  await until(`${id} is listed`, async () => (await client.get(path)).body.items.some((item: any) => item.id === id))
  answered(await client.delete(`${path}/${id}`), 204)
  await entriesOf(reader, `resource=${id}`, 2)
}

/** A user of the tenant, once its entry is on record: what follows is told by itself. */
async function newMember(platform: Platform, role: string): Promise<Person> {
  const [theirs, client] = await inTenant(platform)
  const person = await theirs.newPerson(role)
  await entriesOf(client, `resource=${person.id}&action=user.create`, 1)
  await entriesOf(client, `actor=${person.id}&action=session.open`, 1)
  return person
}

const provider = {
  type: 'CloudDirectory',
  clientId: 'platform',
  clientSecret: 'a secret that nobody shall see again',
  displayName: 'conformance',
  enabled: false,
}

export const onRecord: Journeys = {
  'a cluster that is registered and removed': async (platform) => {
    const [, client] = await inTenant(platform)
    await makeAndRemove(client, client, '/api/v1/clusters', { name: platform.newName(), type: 'Hypervisor' })
  },

  'a site that is created and removed': async (platform) => {
    const [, client] = await inTenant(platform)
    await makeAndRemove(client, client, '/api/v1/sites', { name: platform.newName() })
  },

  'a filter that is saved and deleted': async (platform) => {
    const [, client] = await inTenant(platform)
    const json = { name: platform.newName(), context: 'clusters', filter: { status: 'Offline' } }
    await makeAndRemove(client, client, '/api/v1/users/me/saved-filters', json)
  },

  'a webhook that is created and deleted': async (platform) => {
    const [, client] = await inTenant(platform)
    const json = { url: 'https://receiver.example.com/hooks', events: ['platform.cluster.registered'] }
    await makeAndRemove(client, client, '/api/v1/webhooks', json)
  },

  'an API token that is created and deleted': async (platform) => {
    const [, client] = await inTenant(platform)
    await makeAndRemove(client, client, '/api/v1/users/me/tokens', { name: platform.newName() })
  },

  'an identity provider that is configured and removed': async (platform) => {
    const admin = await platform.admin
    const json = { ...provider, tenantId: crypto.randomUUID() }
    await makeAndRemove(admin, admin, '/api/v1/platform/identity/providers', json)
  },

  'who signs in and out': async (platform) => {
    const [, client] = await inTenant(platform)
    const person = await newMember(platform, 'Viewer')
    const { accessToken } = await platform.signIn(person)
    await entriesOf(client, `actor=${person.id}&action=session.open`, 2)
    answered(await platform.anonymous.withToken(accessToken).post('/api/v1/auth/logout'), 204)
    await entriesOf(client, `actor=${person.id}&action=session.close`, 1)
  },

  'notifications that are read': async (platform) => {
    const [, client] = await inTenant(platform)
    const person = await newMember(platform, 'Viewer')
    const { refreshToken } = person.tokens
    for (const status of [200, 401]) {
      answered(await platform.anonymous.post('/api/v1/auth/refresh', { refreshToken }), status)
    }
    const path = '/api/v1/notifications'
    await until('the alarm', async () => answered(await person.client.get(path), 200).unreadCount === 1)
    answered(await person.client.patch(path, { markAllRead: true }), 204)
    await entriesOf(client, `actor=${person.id}&action=notification.read`, 1)
  },

  'a relay that enrolls': async (platform) => {
    const [theirs, client] = await inTenant(platform)
    const { id, enrollmentToken } = await theirs.newCluster()
    await entriesOf(client, `resource=${id}`, 1)
    await theirs.enroll(enrollmentToken)
    await entriesOf(client, `resource=${id}&action=relay.enroll`, 1)
  },

  'a job that is submitted and cancelled': async (platform) => {
    const [theirs, client] = await inTenant(platform)
    const { id: clusterId } = await theirs.newCluster()
    await entriesOf(client, `resource=${clusterId}`, 1)
    const jobId = await theirs.submit(clusterId)
    await entriesOf(client, `resource=${jobId}`, 1)
    answered(await client.post(`/api/v1/jobs/${jobId}/cancel`), 202)
    await entriesOf(client, `resource=${jobId}&action=job.cancel`, 1)
  },

  'what an administrator adds to it, each by itself': async (platform) => {
    const admin = await platform.admin
    for (const resource of [platform.newName(), platform.newName()]) {
      answered(await admin.post('/api/v1/platform/audit', { action: 'change.approved', resource, detail: '' }), 204)
      await entriesOf(admin, `resource=${encodeURIComponent(resource)}`, 1)
    }
  },

  'who has the catalog looked at': async (platform) => {
    const person = await platform.newPerson('PlatformAdmin')
    const admin = await platform.admin
    await entriesOf(admin, `actor=${person.id}&action=session.open`, 1)
    answered(await person.client.post('/api/v1/modules/catalog/scan'), 202)
    await entriesOf(admin, `actor=${person.id}&action=catalog.scan`, 1)
  },
}
