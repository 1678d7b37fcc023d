import { beforeAll, expect, test } from 'vitest'
import { now } from '@platform/core/clock'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import * as Job from '@platform/core/jobs/job'
import { findStoredResponse, storeResponseWrite } from '@platform/core/outbox/idempotency'
import { outboxRetryMs } from '@platform/core/aws/queues'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'
import { waitingRecords } from '../support/books.ts'
import { counters, script } from '../support/jobs.ts'
import { takeMessages } from '../support/messages.ts'

/** What a submission leaves, and whom it tells. */

beforeAll(started)

test('a job that is accepted is announced once, is due if nobody hears of it, and stands in the trail', async () => {
  const caller = await callerOf()
  const { organisationId } = caller
  const { cluster } = await enrolledCluster(caller)
  await Promise.all([takeMessages(config.PLAT_QUEUE_JOBS), takeMessages(config.PLAT_QUEUE_EVENTS)])
  const request = { key: newId('job'), fingerprint: 'one' }
  const step = (body: unknown) => storeResponseWrite(caller, request, { status: 202, body })
  const answer = await Job.submit({ ...caller, once: { step, happened: () => undefined } }, script(cluster.id))
  expect(answer).toEqual({
    id: expect.stringMatching(/^job_/),
    clusterId: cluster.id,
    type: 'InvokeScript',
    status: 'Queued',
    createdAt: expect.any(String),
  })
  expect(await findStoredResponse(caller, request)).toEqual({ status: 202, body: answer })
  expect(await takeMessages(config.PLAT_QUEUE_JOBS)).toEqual([{ organisationId, jobId: answer.id }])
  // The message about the job leads to the books as well.
  expect(await takeMessages(config.PLAT_QUEUE_EVENTS)).toEqual([])
  const dueInMs = keys.dueTimeOf(String((await get(keys.job(organisationId, answer.id)))?.['duesk'])) - now()
  expect(dueInMs).toBeGreaterThan(outboxRetryMs - 20_000)
  expect(dueInMs).toBeLessThanOrEqual(outboxRetryMs)
  const record = (await waitingRecords(organisationId)).find(({ audit }) => audit?.resource === answer.id)
  expect(record?.audit).toMatchObject({ action: 'job.submit', detail: cluster.id })
  expect(record?.events).toMatchObject([{ name: 'job.queued', subject: answer.id }])
})

test('a job may name nodes of its cluster, and only those', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller, ['a', 'b'])
  const [first, second] = world.relay.nodes.map(({ id }) => id)
  const submitted = (...targetNodeIds: unknown[]) => Job.submit(caller, script(world.cluster.id, { targetNodeIds }))
  const { id } = await submitted(first, second)
  expect(await Job.read(caller, id)).toMatchObject({ payload: { targetNodeIds: [first, second] } })
  expect(await refusalOf(submitted(first, 'node_x'))).toBe('node_not_in_cluster')
  expect(await refusalOf(submitted('node_x', first))).toBe('node_not_in_cluster')
  expect(await counters(caller, world)).toEqual([1, 0])
})
