import assert from 'node:assert/strict'
import { expectStatus } from '../../../conformance/support/answer.ts'
import { entriesOf } from '../../../conformance/support/audit.ts'
import { finishedBatch, jobFor, submitBatch } from '../../../conformance/support/batch.ts'
import { recordedChanges } from '../../../conformance/support/recorded-changes.ts'
import {
  type Deliveries,
  heardOf,
  newestDelivery,
  startDeliveries,
  webhooksPath,
} from '../../../conformance/support/webhooks.ts'
import { waitFor } from '../../../support/wait-for.ts'
import { inPlatform, own } from './act.ts'
import type { Act, Scene } from './withholding.ts'

/** Requests of the conformance suite that need grants. */

/** A change that leads to its own audit entry. */
export const onRecord = (change: keyof typeof recordedChanges): Act =>
  own(`the audit trail records ${change}`, ({ platform }) => recordedChanges[change](platform))

/** An act with a receiver of webhooks. */
export const withReceiver =
  (play: (deliveries: Deliveries, scene: Scene) => Promise<void>): Act['play'] =>
  async (scene) => {
    await using deliveries = await startDeliveries(scene.platform)
    assert.ok(deliveries, 'No port for a receiver is free.')
    await play(deliveries, scene)
  }

export const startup = own('startup returns ok once initialisation is complete', async ({ platform }) => {
  expectStatus(await platform.anonymous.get('/health/startup'), 200)
})

export const setupIsOpen = own('the setup status is readable before setup', async ({ platform }) => {
  expectStatus(await platform.anonymous.get('/api/v1/setup/status'), 200)
})

export const publishedKeys = own('the public keys are published', async ({ platform }) => {
  expectStatus(await platform.anonymous.get('/.well-known/jwks.json'), 200)
})

export const organisations = own('organisations are listed', async ({ platform }) => {
  const { organisationId } = await platform.tenant
  await waitFor('the organisation to be listed', async () => {
    const { items } = expectStatus(await (await platform.admin).get('/api/v1/platform/organisations?pageSize=100'), 200)
    return items.some(({ id }: any) => id === organisationId)
  })
})

export const summary = own('the portal summary is readable', async ({ platform }) => {
  expectStatus(await (await platform.admin).get('/api/v1/portal/summary'), 200)
})

/** The last use of an API token is recorded, whatever it is used for. */
export const tokenUse = (path: string): Act =>
  inPlatform(
    own(`the last use of a token at ${path} is recorded`, async ({ platform }) => {
      const { client } = await platform.newPerson('Operator')
      const { token } = expectStatus(await client.post('/api/v1/users/me/tokens', { name: 'use' }), 201)
      expectStatus(await platform.anonymous.withToken(token).get(path), 200)
      await waitFor('the use to be recorded', async () => {
        const { items } = expectStatus(await client.get('/api/v1/users/me/tokens'), 200)
        return items[0].lastUsedAt ?? undefined
      })
    }),
  )

export const batch = inPlatform(
  own('a batch is accepted and cancelled', async ({ platform }) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const { batchId } = await submitBatch(platform, { jobs: [jobFor(clusterId), jobFor(clusterId)] })
    expectStatus(await admin.post(`/api/v1/jobs/batch/${batchId}/cancel`), 202)
    await finishedBatch(platform, batchId)
    expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
  }),
)

export const delivery = own(
  'a test event is delivered',
  withReceiver(async ({ admin, newWebhook }) => {
    const { id } = await newWebhook('/tested', ['platform.setup.*'])
    expectStatus(await admin.post(`${webhooksPath}/${id}/test`), 202)
    await newestDelivery(admin, id, ({ attempts }) => attempts.length > 0)
  }),
)

export const eventDelivery = own(
  'an event is delivered',
  withReceiver(async ({ theirs, receiver, newWebhook }) => {
    await newWebhook('/registered', ['platform.cluster.registered'])
    const { id } = await theirs.newCluster()
    await heardOf(receiver, '/registered', id)
  }),
)

export const providerTest = inPlatform(
  own('a test of an identity provider reports its failed checks', async ({ platform }) => {
    const admin = await platform.admin
    const path = '/api/v1/platform/identity/providers'
    const client = { clientId: 'platform', clientSecret: 'a secret that is never returned' }
    const tenant = { tenantId: crypto.randomUUID(), authorityHost: 'https://login.invalid', enabled: false }
    const provider = { type: 'CloudDirectory', displayName: 'grants', ...client, ...tenant }
    const { id } = expectStatus(await admin.post(path, provider), 201)
    platform.removeLater(admin, `${path}/${id}`)
    assert.equal(expectStatus(await admin.post(`${path}/${id}/test`), 200).ok, false)
  }),
)

export const catalogScan = own('the audit trail records a requested scan of the catalog', async ({ platform }) => {
  const admin = await platform.admin
  const user = await platform.newPerson('PlatformAdmin')
  await entriesOf(admin, `actor=${user.id}&action=session.open`, 1)
  expectStatus(await user.client.post('/api/v1/modules/catalog/scan'), 202)
  await entriesOf(admin, `actor=${user.id}&action=catalog.scan`, 1)
})

export const extraEntries = inPlatform(
  own('extra entries of an administrator are recorded', async ({ platform }) => {
    const admin = await platform.admin
    for (const resource of [platform.newName(), platform.newName()]) {
      expectStatus(await admin.post('/api/v1/platform/audit', { action: 'change.approved', resource, detail: '' }), 204)
      await entriesOf(admin, `resource=${encodeURIComponent(resource)}`, 1)
    }
  }),
)
