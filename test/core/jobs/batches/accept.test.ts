import { randomBytes } from 'node:crypto'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { isId, newId, timeOf } from '@platform/core/id'
import * as Batch from '@platform/core/jobs/batches/batch'
import { batchIdOf, indexOf, jobIdOf, newBatchId } from '@platform/core/jobs/batches/id'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { readOutput } from '@platform/core/jobs/output'
import { beforeAll, describe, expect, test } from 'vitest'
import { bootstrapPlatform, enrolledCluster, errorCodeOf, newCaller, expectError } from '../../../support/fixtures.ts'
import { advance, jobRecords, jobsForClusters, storeClusters, submitAndExpand } from '../../support/batches.ts'
import { scriptJob } from '../../support/jobs.ts'
import { measureUsage } from '../../support/usage.ts'

const indexes = Array.from({ length: 500 }, (_, index) => index)

test('a batch and its 500 jobs name each other by their ids, which are ids like any other', () => {
  for (let round = 0; round < 50; round++) {
    const batchId = newBatchId()
    const jobIds = indexes.map((index) => jobIdOf(batchId, index))
    expect(isId('batch', batchId)).toBe(true)
    expect(new Set(jobIds).size).toBe(500)
    expect(jobIds.every((id) => isId('job', id) && timeOf(id) === timeOf(batchId))).toBe(true)
    expect(jobIds.map(batchIdOf)).toEqual(jobIds.map(() => batchId))
    expect(jobIds.map(indexOf)).toEqual(indexes)
  }
})

test('jobs of a batch sort in the order of the request', () => {
  const batchId = newBatchId()
  const jobIds = indexes.map((index) => jobIdOf(batchId, index))
  expect(jobIds.toSorted()).toEqual(jobIds)
})

test('a job that came alone leads to a batch id that is well formed', () => {
  for (let round = 0; round < 1000; round++) expect(isId('batch', batchIdOf(newId('job')))).toBe(true)
})

beforeAll(bootstrapPlatform)

const unknownCluster = 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa'
const randomScript = (bytes = 700) => `#!/bin/sh\n${randomBytes(bytes).toString('base64')}`

/** Whether nothing of an organisation was written: no batch, no record. */
async function isUntouched(organisationId: string): Promise<boolean> {
  const outbox = await query({ pk: keys.outbox(organisationId, '').pk })
  const batches = await query({ index: 'gsi1', pk: keys.organisationBatches(organisationId) })
  return outbox.items.length + batches.items.length === 0 && !(await get(keys.removalGuard(organisationId)))
}

describe('what 500 jobs cost', () => {
  test('500 jobs of 500 clusters with one script take seven calls, three rounds and 75 write units', async () => {
    const caller = await newCaller()
    const jobs = jobsForClusters(await storeClusters(caller, 500), 500, { script: randomScript() })
    const { result, usage } = await measureUsage(() => Batch.submit(caller, { jobs }))
    expect(result.jobIds).toHaveLength(500)
    expect(usage.calls.toSorted()).toEqual([...Array(5).fill('BatchGetItem'), 'SendMessage', 'TransactWriteItems'])
    expect(usage.rounds).toBe(3)
    expect(usage.writeUnits).toBeGreaterThan(10)
    expect(usage.writeUnits).toBeLessThanOrEqual(75)
  })

  test('500 different scripts of 1 KB take at most one and a half write units each', async () => {
    const caller = await newCaller()
    const [clusterId = ''] = await storeClusters(caller, 1)
    const jobs = Array.from({ length: 500 }, () => scriptJob(clusterId, { script: randomScript() }))
    const { usage } = await measureUsage(() => Batch.submit(caller, { jobs }))
    expect(usage.calls).toEqual(['BatchGetItem', 'TransactWriteItems', 'SendMessage'])
    expect(usage.writeUnits).toBeLessThanOrEqual(750)
  })
})

describe('all or nothing', () => {
  test('501 jobs are refused before any of them is looked at', async () => {
    const caller = await newCaller()
    const { result, usage } = await measureUsage(() =>
      errorCodeOf(Batch.submit(caller, { jobs: Array(501).fill('no job') })),
    )
    expect(result).toBe('batch_limit_exceeded')
    expect(usage.calls).toEqual([])
    expect(await isUntouched(caller.organisationId)).toBe(true)
  })

  test.each([
    ['an unknown type', { type: 'Nope' }, 'unknown_job_type'],
    ['a type of the platform itself', { type: 'PlatformUpdate' }, 'job_type_not_submittable'],
    ['too large a payload', { payload: { script: 'ä'.repeat(200_000) } }, 'payload_too_large'],
    ['a node of no cluster', { payload: { script: 'x', targetNodeIds: ['node_x'] } }, 'node_not_in_cluster'],
    [
      'a foreign cluster with nodes',
      { clusterId: unknownCluster, payload: { script: 'x', targetNodeIds: ['n'] } },
      'cluster_forbidden',
    ],
  ])('one job with %s refuses the batch', async (_, change, code) => {
    const caller = await newCaller()
    const { cluster } = await enrolledCluster(caller)
    const jobs = [scriptJob(cluster.id), { ...scriptJob(cluster.id), ...change }, scriptJob(cluster.id)]
    await expectError(Batch.submit(caller, { jobs }), code)
    expect((await Batch.list(caller, { page: 1, pageSize: 20 })).totalCount).toBe(0)
  })

  test('jobs may name nodes of their own clusters', async () => {
    const caller = await newCaller()
    const enrolledClusters = [await enrolledCluster(caller), await enrolledCluster(caller, ['a', 'b'])]
    const targets = enrolledClusters.map(({ relay }) => relay.nodes.map(({ id }) => id))
    const jobOf = (place: number, nodes: number) =>
      scriptJob(enrolledClusters[place]?.cluster.id ?? '', { targetNodeIds: targets[nodes] })
    await expectError(Batch.submit(caller, { jobs: [jobOf(0, 0), jobOf(0, 1)] }), 'node_not_in_cluster')
    const { jobIds } = await Batch.submit(caller, { jobs: [jobOf(0, 0), jobOf(1, 1)] })
    expect((await Job.read(caller, jobIds[1] ?? '')).payload).toEqual({
      script: 'echo hello',
      targetNodeIds: targets[1],
    })
  })
})

describe('before the jobs stand in the table', () => {
  test('each id answers with its own job and payload at once, and to nobody else', async () => {
    const caller = await newCaller()
    const clusters = await storeClusters(caller, 3)
    const jobs = Array.from({ length: 500 }, (_, index) =>
      scriptJob(clusters[index % 3] ?? '', { script: `echo ${index}` }),
    )
    const { batchId, jobIds, createdAt } = await Batch.submit(caller, { jobs })
    for (const index of [0, 1, 255, 499]) {
      const job = await Job.read(caller, jobIds[index] ?? '')
      expect(job).toMatchObject({ id: jobIds[index], batchId, status: 'Queued', createdAt })
      expect([job.clusterId, job.payload]).toEqual([clusters[index % 3], { script: `echo ${index}` }])
      expect(await readOutput(caller, job.id, 0)).toEqual({
        items: [],
        nextOffset: 0,
        status: 'Queued',
        finished: false,
      })
      await expectError(Job.read(await newCaller(), job.id), 'job_not_found')
    }
    expect(await jobRecords(caller, jobIds)).toEqual([])
    const page = await list(caller, { batchId, page: 3, pageSize: 100 })
    expect(page.totalCount).toBe(500)
    expect(page.items.map(({ id }) => id)).toEqual(jobIds.toReversed().slice(200, 300))
    expect((await list(caller, { batchId, clusterId: clusters[0], page: 1, pageSize: 1 })).totalCount).toBe(167)
    expect(await Batch.read(caller, batchId)).toMatchObject({
      status: 'Running',
      submittedCount: 500,
      counts: { queued: 500 },
    })
    await expectError(Batch.read(await newCaller(), batchId), 'batch_not_found')
  })

  test('an id behind the last job of a batch is not found, before and after', async () => {
    const caller = await newCaller()
    const [clusterId = ''] = await storeClusters(caller, 1)
    const { jobIds } = await Batch.submit(caller, { jobs: [scriptJob(clusterId)] })
    const next = (jobIds[0] ?? '').slice(0, -1) + '1'
    await expectError(Job.read(caller, next), 'job_not_found')
    const after = await submitAndExpand(caller, { jobs: [scriptJob(clusterId)] })
    await expectError(Job.read(caller, (after.jobIds[0] ?? '').slice(0, -1) + '1'), 'job_not_found')
  })

  test('jobs of every size up to 4 MB in all keep their payloads', async () => {
    const caller = await newCaller()
    const clusters = await storeClusters(caller, 2)
    const sizes = [
      190_000,
      1,
      ...Array.from({ length: 128 }, (_, index) => (index % 2 === 0 ? 12_000 : 34_000)),
      190_000,
      3,
    ]
    const scripts = sizes.map((size) => randomBytes(size).toString('base64'))
    const jobs = scripts.map((text, index) => scriptJob(clusters[index % 2] ?? '', { script: text }))
    expect(Buffer.byteLength(JSON.stringify(jobs))).toBeGreaterThan(4_100_000)
    const { batchId, jobIds } = await Batch.submit(caller, { jobs })
    for (const index of [0, 1, 2, 3, 64, 129, 130, 131]) {
      expect((await Job.read(caller, jobIds[index] ?? '')).payload).toEqual({ script: scripts[index] })
    }
    await advance(caller, batchId)
    const payloads = await Promise.all(jobIds.map(async (id) => (await Job.read(caller, id)).payload['script']))
    expect(payloads).toEqual(scripts)
  })
})
