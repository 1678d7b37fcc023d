import { beforeAll, expect, test, vi } from 'vitest'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import { newId } from '@platform/core/id'
import { handler as consumeBatches } from '../../functions/queue/batches.ts'
import { handler as consumeEvents } from '../../functions/queue/events.ts'
import { jobsFor } from '../core/support/batches.ts'
import { script } from '../core/support/jobs.ts'
import { takeMessages } from '../core/support/messages.ts'
import { posting, type Received, send } from '../support/event.ts'
import { bearer } from '../support/tokens.ts'
import { callerOf, started } from '../support/world.ts'
import { handlerOf } from './table.ts'

await vi.hoisted(() => import('../support/unlimited.ts'))
beforeAll(started)

const path = '/api/v1/jobs/batch'

/** Somebody of a fresh organisation with so many clusters. */
async function somebody(clusterCount: number) {
  const caller = await callerOf()
  const headers = await bearer(['OrgAdmin'], caller.organisationId)
  const registrations = Array.from({ length: clusterCount }, (_, index) =>
    Cluster.register(caller, { name: `cluster ${index}`, type: 'Hypervisor' }),
  )
  const clusters = (await Promise.all(registrations)).map(({ id }) => id)
  const get = (target: string): Promise<Received> => send(handlerOf('jobs'), { target, headers })
  const post = (target: string, body: unknown, more: Record<string, string> = {}): Promise<Received> =>
    send(handlerOf('jobs'), posting(target, body, { ...headers, ...more }))
  return { organisationId: caller.organisationId, clusters, get, post }
}

/** Hands all messages of a queue to its consumer. */
async function consume(QueueUrl: string, consumer: typeof consumeBatches): Promise<number> {
  const bodies = await takeMessages(QueueUrl)
  const Records = bodies.map((body, index) => ({ messageId: String(index), body: JSON.stringify(body) }))
  expect(await consumer({ Records })).toEqual({ batchItemFailures: [] })
  return bodies.length
}

test('a batch from its submission to its end, as clients and queues see it', async () => {
  const { clusters, get, post } = await somebody(2)
  const accepted = await post(path, { jobs: jobsFor(clusters, 30), maxErrors: 3 })
  expect(accepted).toMatchObject({ status: 202, json: { submittedCount: 30, createdAt: expect.any(String) } })
  const { batchId, jobIds } = accepted.json
  expect((await get(`/api/v1/jobs/${jobIds[29]}`)).json).toMatchObject({ status: 'Queued', batchId })
  expect((await get(`/api/v1/jobs/${jobIds[29]}/output`)).json).toMatchObject({ items: [], finished: false })
  expect(await consume(config.PLAT_QUEUE_BATCHES, consumeBatches)).toBe(1)
  expect(await consume(config.PLAT_QUEUE_EVENTS, consumeEvents)).toBeGreaterThan(0)
  expect((await get(`/api/v1/jobs?status=Queued&clusterId=${clusters[0]}`)).json).toMatchObject({ totalCount: 15 })
  expect((await get(`/api/v1/jobs?batchId=${batchId}&pageSize=5`)).json).toMatchObject({ totalCount: 30, pageSize: 5 })
  expect((await get(path)).json).toMatchObject({
    totalCount: 1,
    items: [{ id: batchId, status: 'Running', maxErrors: 3 }],
  })
  const cancelled = await post(`${path}/${batchId}/cancel`, {})
  expect(cancelled).toMatchObject({ status: 202, json: { status: 'Cancelling' } })
  await consume(config.PLAT_QUEUE_BATCHES, consumeBatches)
  await consume(config.PLAT_QUEUE_EVENTS, consumeEvents)
  expect((await get(`${path}/${batchId}`)).json).toMatchObject({ status: 'Finished', counts: { cancelled: 30 } })
  const again = await post(`${path}/${batchId}/cancel`, {})
  expect([again.status, again.json.error]).toEqual([409, 'batch_already_finished'])
  const retried = await post(`${path}/${batchId}/retry`, {})
  expect(retried).toMatchObject({ status: 202, json: { submittedCount: 30 } })
  expect((await get(`${path}/${retried.json.batchId}`)).json).toMatchObject({ retryOf: batchId, status: 'Running' })
})

test('a batch and a retry with an Idempotency-Key happen once', async () => {
  const { clusters, get, post } = await somebody(1)
  const key = { 'idempotency-key': newId('evt') }
  const body = { jobs: jobsFor(clusters, 500) }
  const answers = await Promise.all([post(path, body, key), post(path, body, key), post(path, body, key)])
  answers.push(await post(path, body, key))
  expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
  expect((await get(path)).json.totalCount).toBe(1)
  const other = await post(path, { jobs: jobsFor(clusters, 499) }, key)
  expect([other.status, other.json.error]).toEqual([422, 'idempotency_key_reused'])
})

test('what is no batch is refused, and nothing is created', async () => {
  const { clusters, get, post } = await somebody(1)
  const [clusterId = ''] = clusters
  const stranger = await somebody(1)
  const refusals: [body: unknown, status: number, error: string][] = [
    [{}, 400, 'validation_failed'],
    [{ jobs: [] }, 400, 'validation_failed'],
    [{ jobs: {} }, 400, 'validation_failed'],
    [{ jobs: jobsFor(clusters, 501) }, 400, 'batch_limit_exceeded'],
    [{ jobs: [null] }, 400, 'validation_failed'],
    [{ jobs: jobsFor(clusters), maxConcurrency: 0 }, 400, 'validation_failed'],
    [{ jobs: jobsFor(clusters), maxErrors: -1 }, 400, 'validation_failed'],
    [{ jobs: jobsFor([...clusters, ...stranger.clusters]) }, 403, 'cluster_forbidden'],
    [{ jobs: [script(clusterId, {}, { type: 'ModuleInstall' })] }, 422, 'job_type_not_submittable'],
    [{ jobs: [script(clusterId, { script: 'x'.repeat(262_145) })] }, 400, 'validation_failed'],
    [{ jobs: [script(clusterId, { script: 'ä'.repeat(131_073) })] }, 413, 'payload_too_large'],
  ]
  for (const [body, status, error] of refusals) {
    const answer = await post(path, body)
    expect([answer.status, answer.json.error]).toEqual([status, error])
  }
  expect((await get(path)).json).toMatchObject({ items: [], totalCount: 0 })
  expect((await get('/api/v1/jobs')).json).toMatchObject({ items: [], totalCount: 0 })
})

test.each(['status=Nope', 'type=Nope', 'page=0', 'pageSize=101', 'page=x'])(
  'GET /jobs?%s answers 400',
  async (query) => {
    const { get } = await somebody(0)
    expect((await get(`/api/v1/jobs?${query}`)).status).toBe(400)
  },
)

test.each(['21', '-1', 'x', '1.5'])('output is not waited for %s seconds', async (waitSeconds) => {
  const { get } = await somebody(0)
  expect((await get(`/api/v1/jobs/${newId('job')}/output?waitSeconds=${waitSeconds}`)).status).toBe(400)
})
