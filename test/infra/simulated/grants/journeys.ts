import assert from 'node:assert/strict'
import { expectStatus } from '../../../conformance/support/answer.ts'
import { waitForBatch, jobFor, submitBatch } from '../../../conformance/support/batch.ts'
import { recordedChanges } from '../../../conformance/support/recorded-changes.ts'
import * as webhooks from '../../../conformance/support/webhooks.ts'
import { waitFor } from '../../../support/wait-for.ts'
import type { Environment } from './environment.ts'
import { signInByDirectory, signInByOpenId } from './identity-providers.ts'
import * as messages from './lost-messages.ts'

export type Journey = (environment: Environment) => Promise<void>

const useToken =
  (path: string): Journey =>
  async ({ platform }) => {
    const { client } = await platform.newUser('Operator')
    const { token } = expectStatus(await client.post('/api/v1/users/me/tokens', { name: 'use' }), 201)
    expectStatus(await platform.anonymous.withToken(token).get(path), 200)
  }

const withReceiver =
  (work: (deliveries: webhooks.WebhookTenant) => Promise<void>): Journey =>
  async ({ platform }) => {
    await using deliveries = await webhooks.startWebhookTenant(platform)
    assert.ok(deliveries, 'No port for a receiver is free.')
    await work(deliveries)
  }

const deliverTest = (status: number): Journey =>
  withReceiver(async ({ admin, receiver, newWebhook }) => {
    receiver.respondWith(status)
    const { id } = await newWebhook('/test', ['platform.setup.*'])
    expectStatus(await admin.post(`${webhooks.webhooksPath}/${id}/test`), 202)
    await webhooks.waitForDelivery(admin, id, ({ attempts }) => attempts.length > 0)
  })

const providersPath = '/api/v1/platform/identity/providers'

export const journeys: Record<string, Journey> = {
  'public endpoints': async ({ platform: { anonymous } }) => {
    expectStatus(await anonymous.get('/health/startup'), 200)
    expectStatus(await anonymous.get('/.well-known/jwks.json'), 200)
  },
  ...Object.fromEntries(
    Object.entries(recordedChanges).map(([change, make]): [string, Journey] => [
      change,
      ({ platform }) => make(platform),
    ]),
  ),
  organisations: async ({ platform }) => {
    const admin = await platform.admin
    expectStatus(await admin.post('/api/v1/platform/organisations', { name: platform.newName() }), 201)
    expectStatus(await admin.get('/api/v1/platform/organisations'), 200)
  },
  'the portal summary': async ({ platform }) => {
    expectStatus(await (await platform.admin).get('/api/v1/portal/summary'), 200)
  },
  'an API token for the event catalog': useToken('/api/v1/events/catalog'),
  'an API token for the portal summary': useToken('/api/v1/portal/summary'),
  'an audit entry of an administrator': async ({ platform }) => {
    const entry = { action: 'change.approved', resource: platform.newName(), detail: '' }
    expectStatus(await (await platform.admin).post('/api/v1/platform/audit', entry), 204)
  },
  'an export of the audit trail': async ({ platform }) => {
    expectStatus(await (await platform.admin).get('/api/v1/platform/audit/export'), 200)
  },
  'a control channel': async ({ platform }) => {
    const relay = await platform.newRelay()
    const channel = await relay.openChannel()
    assert.deepEqual([channel?.code, channel?.granted], [0, [0]])
    channel?.mqtt.send({ cmd: 'disconnect' })
    await waitFor('the channel is closed', async () => {
      const { relay: seen } = await platform.cluster(relay.clusterId)
      return seen.channel === 'none'
    })
  },
  'a cancelled batch': async ({ platform }) => {
    const admin = await platform.admin
    const { id: clusterId } = await platform.newCluster()
    const { batchId } = await submitBatch(platform, { jobs: [jobFor(clusterId), jobFor(clusterId)] })
    expectStatus(await admin.post(`/api/v1/jobs/batch/${batchId}/cancel`), 202)
    await waitForBatch(platform, batchId)
  },
  'a delivered test event': deliverTest(204),
  'a failed delivery, which is repeated': deliverTest(500),
  'a webhook that its receiver ends': deliverTest(410),
  'a delivered event': withReceiver(async ({ platform, receiver, newWebhook }) => {
    await newWebhook('/registered', ['platform.cluster.registered'])
    const { id } = await platform.newCluster()
    await webhooks.waitForClusterEvent(receiver, '/registered', id)
  }),
  'a tested and a deleted identity provider': async ({ platform }) => {
    const admin = await platform.admin
    const tenant = { tenantId: crypto.randomUUID(), authorityHost: 'https://login.invalid', enabled: false }
    const provider = { type: 'CloudDirectory', clientId: 'platform', clientSecret: 'secret', ...tenant }
    const { id } = expectStatus(await admin.post(providersPath, provider), 201)
    assert.equal(expectStatus(await admin.post(`${providersPath}/${id}/test`), 200).ok, false)
    expectStatus(await admin.delete(`${providersPath}/${id}`), 204)
  },
  'a sign-in by a directory': signInByDirectory,
  'a sign-in by an OpenID provider': signInByOpenId,
  'a dead-lettered batch': messages.deadLetterBatch,
  'a swept batch': messages.sweepBatches,
  'swept events': messages.sweepEvents,
  'a swept delivery': messages.sweepDeliveries,
  'a swept secret': messages.sweepOrphanedSecrets,
  'a private registry': async ({ platform, registryHost }) => {
    const admin = await platform.admin
    const imageRef = `${registryHost}/modules/private:1.0.0`
    expectStatus(await admin.post('/api/modules/install', { imageRef }), 422, 'image_unreachable')
    const { scannedAt } = expectStatus(await admin.get('/api/v1/modules/catalog'), 200)
    expectStatus(await admin.post('/api/v1/modules/catalog/scan'), 202)
    await waitFor('the scan', async () => (await admin.get('/api/v1/modules/catalog')).body.scannedAt !== scannedAt)
    await admin.get('/api/v1/platform/updates/check')
  },
  'scheduled functions': async ({ tick }) => {
    await tick('schedule/catalog')
    await tick('schedule/heartbeat')
    await tick('schedule/write-check')
    // The private registry rejects the request for releases.
    await tick('schedule/updates').catch(() => undefined)
  },
}
