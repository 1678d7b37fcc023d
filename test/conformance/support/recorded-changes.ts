import { expectStatus } from './answer.ts'
import { waitForEntries } from './audit.ts'
import type { Client } from './client.ts'
import type { TestUser } from './person.ts'
import type { Platform } from './platform.ts'
import { waitFor } from '../../support/wait-for.ts'

async function createAndRemove(client: Client, path: string, json: object): Promise<void> {
  const { id } = expectStatus(await client.post(path, json), 201)
  await waitForEntries(client, `resource=${id}`, 1)
  await waitFor(`${id} to be listed`, async () =>
    (await client.get(path)).body.items.some((item: any) => item.id === id),
  )
  expectStatus(await client.delete(`${path}/${id}`), 204)
  await waitForEntries(client, `resource=${id}`, 2)
}

const inTenant = (path: string, json: (name: string) => object) => async (platform: Platform) =>
  createAndRemove((await platform.tenant).client, path, json(platform.newName()))

async function newMember(platform: Platform, client: Client): Promise<TestUser> {
  const user = await platform.as(await platform.tenant).newUser('Viewer')
  await waitForEntries(client, `actor=${user.id}&action=session.open`, 1)
  return user
}

const provider = () => ({
  type: 'CloudDirectory',
  tenantId: crypto.randomUUID(),
  clientId: 'platform',
  clientSecret: 'a secret that is never returned',
  displayName: 'conformance',
  enabled: false,
})

/**
 * Changes by name. Each change waits for its audit entries. All changes except that of the identity provider run in the
 * tenant.
 */
export const recordedChanges = {
  'a registered and a removed cluster': inTenant('/api/v1/clusters', (name) => ({ name, type: 'Hypervisor' })),
  'a created and a removed site': inTenant('/api/v1/sites', (name) => ({ name })),
  'a saved and a deleted filter': inTenant('/api/v1/users/me/saved-filters', (name) => ({
    name,
    context: 'clusters',
    filter: { status: 'Offline' },
  })),
  'a created and a deleted webhook': inTenant('/api/v1/webhooks', () => ({
    url: 'https://receiver.example.com/hooks',
    events: ['platform.cluster.registered'],
  })),
  'a created and a deleted API token': inTenant('/api/v1/users/me/tokens', (name) => ({ name })),

  'a configured and a removed identity provider': async (platform: Platform) =>
    createAndRemove(await platform.admin, '/api/v1/platform/identity/providers', provider()),

  'sign-in and sign-out': async (platform: Platform) => {
    const { client } = await platform.tenant
    const user = await newMember(platform, client)
    const { accessToken } = await platform.signIn(user)
    await waitForEntries(client, `actor=${user.id}&action=session.open`, 2)
    expectStatus(await platform.anonymous.withToken(accessToken).post('/api/v1/auth/logout'), 204)
    await waitForEntries(client, `actor=${user.id}&action=session.close`, 1)
  },

  'notifications marked as read': async (platform: Platform) => {
    const { client } = await platform.tenant
    const user = await newMember(platform, client)
    const { refreshToken } = user.tokens
    for (const status of [200, 401]) {
      expectStatus(await platform.anonymous.post('/api/v1/auth/refresh', { refreshToken }), status)
    }
    // The reuse has ended the session.
    const { accessToken } = await platform.signIn(user)
    const session = platform.anonymous.withToken(accessToken)
    const path = '/api/v1/notifications'
    await waitFor('the security alert', async () => expectStatus(await session.get(path), 200).unreadCount === 1)
    expectStatus(await session.patch(path, { markAllRead: true }), 204)
    await waitForEntries(client, `actor=${user.id}&action=notification.read`, 1)
  },

  'an enrolled relay': async (platform: Platform) => {
    const tenantPlatform = platform.as(await platform.tenant)
    const { id, enrollmentToken } = await tenantPlatform.newCluster()
    await waitForEntries(await tenantPlatform.admin, `resource=${id}`, 1)
    await tenantPlatform.enroll(enrollmentToken)
    await waitForEntries(await tenantPlatform.admin, `resource=${id}&action=relay.enroll`, 1)
  },

  'a submitted and a cancelled job': async (platform: Platform) => {
    const tenantPlatform = platform.as(await platform.tenant)
    const client = await tenantPlatform.admin
    const { id: clusterId } = await tenantPlatform.newCluster()
    await waitForEntries(client, `resource=${clusterId}`, 1)
    const jobId = await tenantPlatform.submit(clusterId)
    await waitForEntries(client, `resource=${jobId}`, 1)
    expectStatus(await client.post(`/api/v1/jobs/${jobId}/cancel`), 202)
    await waitForEntries(client, `resource=${jobId}&action=job.cancel`, 1)
  },
}
