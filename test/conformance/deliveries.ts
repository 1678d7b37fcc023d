import assert from 'node:assert/strict'
import { Webhook } from 'standardwebhooks'
import { answered } from './support/answer.ts'
import { eventSchemas } from './support/events.ts'
import type { Journeys } from './support/platform.ts'
import type { Received } from './support/receiver.ts'
import { until } from './support/until.ts'
import { came, eventsAt, heardOf, newestDelivery, onStage, webhooksPath as path } from './support/webhooks.ts'

const signatureHeaders = ({ headers }: Received) => ({
  'webhook-id': String(headers['webhook-id']),
  'webhook-timestamp': String(headers['webhook-timestamp']),
  'webhook-signature': String(headers['webhook-signature']),
})

export const deliveries: Journeys = {
  'a test event arrives, signed with the webhook’s secret and no other': onStage(
    async ({ admin, receiver, newWebhook }) => {
      const webhook = await newWebhook('/signed', ['platform.setup.*'])
      const other = await newWebhook('/other', ['platform.setup.*'])
      const accepted = answered(await admin.post(`${path}/${webhook.id}/test`), 202)
      const [request] = await came(receiver, '/signed', 1)
      assert.ok(request)
      const event: any = new Webhook(webhook.secret).verify(request.body, signatureHeaders(request))
      assert.deepEqual([event.specversion, event.type], ['1.0', 'platform.webhook.tested'])
      assert.equal(request.headers['webhook-id'], event.id)
      assert.throws(() => new Webhook(other.secret).verify(request.body, signatureHeaders(request)))
      assert.throws(() => new Webhook(webhook.secret).verify(`${request.body} `, signatureHeaders(request)))
      const done = await newestDelivery(admin, webhook.id, ({ status }) => status === 'Delivered')
      assert.deepEqual([done.id, done.eventId, done.attempts.length], [accepted.id, event.id, 1])
      assert.deepEqual([done.attempts[0].statusCode, done.attempts[0].error], [204, undefined])
      assert.equal(receiver.received.length, 1)
    },
  ),

  'a subscriber has the events that it asked for, as CloudEvents that fit the catalog, and no others': onStage(
    async ({ theirs, admin, receiver, newWebhook }) => {
      await newWebhook('/clusters', ['platform.cluster.*'])
      const { id } = await theirs.newCluster()
      answered(await admin.post(`/api/v1/jobs/${await theirs.submit(id)}/cancel`), 202)
      const removal = await admin.delete(`/api/v1/clusters/${id}`)
      answered(removal, 204)
      const events = await until('both events have come', async () => {
        const about = eventsAt(receiver, '/clusters').filter(({ data }) => data.clusterId === id)
        return about.some(({ type }) => type === 'platform.cluster.deleted') && about.length >= 2 && about
      })
      const types: string[] = events.map(({ type }) => type)
      assert.deepEqual(types.toSorted(), ['platform.cluster.deleted', 'platform.cluster.registered'])
      assert.ok(eventsAt(receiver, '/clusters').every(({ type }) => type.startsWith('platform.cluster.')))
      const deleted = events.find(({ type }) => type === 'platform.cluster.deleted')
      assert.equal(deleted.traceid, removal.headers.get('x-trace-id'))
      const schemas = await eventSchemas(theirs)
      const { organisationId } = answered(await admin.get('/api/v1/auth/me'), 200)
      for (const { specversion, source, subject, time, type, data } of events) {
        assert.deepEqual([specversion, source, subject], ['1.0', `/organisations/${organisationId}`, id])
        assert.ok(Date.parse(time) > 0)
        assert.equal(schemas.get(type)?.(data), true, type)
      }
    },
  ),

  'a subscriber to everything hears of everything in its own organisation, and of nothing in another': onStage(
    async ({ platform, theirs, admin, receiver, newWebhook }) => {
      const { id: webhookId } = await newWebhook('/all', ['*'])
      // Another organisation is busy meanwhile.
      const foreign = await platform.newCluster()
      const { organisationId } = answered(await admin.get('/api/v1/auth/me'), 200)
      const jobId = await theirs.submit((await theirs.newCluster()).id)
      answered(await admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
      const own = () => eventsAt(receiver, '/all')
      answered(await (await platform.admin).delete(`/api/v1/clusters/${foreign.id}`), 204)
      await until('the job is heard of', async () => own().filter(({ subject }) => subject === jobId).length === 2)
      assert.ok(own().every(({ source }) => source === `/organisations/${organisationId}`))
      const types = new Set(own().map(({ type }) => type))
      for (const name of ['cluster.registered', 'job.queued', 'job.cancelled']) assert.ok(types.has(`platform.${name}`))
      await until('all of that is in the log', async () => {
        const log = answered(await admin.get(`${path}/${webhookId}/deliveries?pageSize=100`), 200)
        const logged = new Set(log.items.map(({ eventId }: any) => eventId))
        return own().every(({ id }) => logged.has(id))
      })
    },
  ),

  'a receiver that fails is tried again later; nobody else waits, and what failed can be delivered again': onStage(
    async ({ admin, receiver, newWebhook }) => {
      receiver.answerWith(500)
      const webhook = await newWebhook('/failing', ['platform.setup.*'])
      answered(await admin.post(`${path}/${webhook.id}/test`), 202)
      const failed = await newestDelivery(admin, webhook.id, ({ attempts }) => attempts.length > 0)
      assert.deepEqual([failed.attempts[0].statusCode, failed.attempts[0].error], [500, 'unsuccessful_status'])
      assert.ok(failed.status === 'Pending' && Date.parse(failed.nextAttemptAt) > Date.parse(failed.attempts[0].at))
      const { items } = answered(await admin.get(path), 200)
      assert.ok(items.find(({ id }: any) => id === webhook.id).failureCount > 0)

      receiver.answerWith(200)
      const healthy = await newWebhook('/healthy', ['platform.setup.*'])
      answered(await admin.post(`${path}/${healthy.id}/test`), 202)
      await came(receiver, '/healthy', 1)
      answered(await admin.post(`${path}/${webhook.id}/deliveries/${failed.id}/redeliver`), 202)
      const again = await came(receiver, '/failing', 2)
      assert.equal(new Set(again.map(({ headers }) => headers['webhook-id'])).size, 1)
      await newestDelivery(admin, webhook.id, ({ status }) => status === 'Delivered')
    },
  ),

  'nobody waits for a receiver that hangs': onStage(async ({ admin, receiver, newWebhook }) => {
    receiver.silentAt.add('/hanging')
    const [hanging, quick] = [
      await newWebhook('/hanging', ['platform.setup.*']),
      await newWebhook('/quick', ['platform.setup.*']),
    ]
    answered(await admin.post(`${path}/${hanging.id}/test`), 202)
    await came(receiver, '/hanging', 1)
    answered(await admin.post(`${path}/${quick.id}/test`), 202)
    await came(receiver, '/quick', 1)
    // By then the first attempt is not over.
    const { attempts, status } = await newestDelivery(admin, hanging.id, () => true)
    assert.deepEqual([attempts, status], [[], 'Pending'])
  }),

  'a redirect is not followed': onStage(async ({ admin, receiver, newWebhook }) => {
    receiver.answerWith(302, { location: `${receiver.url}/elsewhere` })
    const webhook = await newWebhook('/redirecting', ['platform.setup.*'])
    answered(await admin.post(`${path}/${webhook.id}/test`), 202)
    const { attempts } = await newestDelivery(admin, webhook.id, (newest) => newest.attempts.length > 0)
    assert.deepEqual([attempts[0].statusCode, attempts[0].error], [302, 'redirected'])
    assert.ok(receiver.received.every((request) => request.path === '/redirecting'))
  }),

  'a webhook that is switched off hears nothing of what happens meanwhile': onStage(
    async ({ theirs, admin, receiver, newWebhook }) => {
      const webhook = await newWebhook('/switched', ['platform.cluster.registered'])
      answered(await admin.patch(`${path}/${webhook.id}`, { enabled: false }), 200)
      const { id: unheard } = await theirs.newCluster()
      await newWebhook('/witness', ['platform.cluster.registered'])
      const { id: unheardToo } = await theirs.newCluster()
      // What the witness has heard of by now, everybody who listened has.
      await heardOf(receiver, '/witness', unheardToo)
      answered(await admin.patch(`${path}/${webhook.id}`, { enabled: true }), 200)
      const { id: last } = await theirs.newCluster()
      await heardOf(receiver, '/switched', last)
      const heard = new Set(eventsAt(receiver, '/switched').map(({ data }) => data.clusterId))
      assert.deepEqual([heard.has(unheard), heard.has(unheardToo)], [false, false])
    },
  ),
}
