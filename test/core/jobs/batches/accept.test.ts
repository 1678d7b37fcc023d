import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as keys from '@platform/core/db/keys'
import { get, query } from '@platform/core/db/table'
import { PlatformError } from '@platform/core/error'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { readOutput } from '@platform/core/jobs/output'
import { callerOf, enrolledCluster, refusalOf, started } from '../../../support/world.ts'
import { expanded, jobsFor, manyClusters, rowsOf, tend } from '../../support/batches.ts'
import { script } from '../../support/jobs.ts'
import { used } from '../../support/usage.ts'

beforeAll(started)

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
    const caller = await callerOf()
    const jobs = jobsFor(await manyClusters(caller, 500), 500, { script: randomScript() })
    const { result, usage } = await used(() => Batch.submit(caller, { jobs }))
    expect(result.jobIds).toHaveLength(500)
    expect(usage.calls.toSorted()).toEqual([...Array(5).fill('BatchGetItem'), 'SendMessage', 'TransactWriteItems'])
    expect(usage.rounds).toBe(3)
    expect(usage.writeUnits).toBeGreaterThan(10)
    expect(usage.writeUnits).toBeLessThanOrEqual(75)
  })

  test('500 different scripts of 1 KB take at most one and a half write units each', async () => {
    const caller = await callerOf()
    const [clusterId = ''] = await manyClusters(caller, 1)
    const jobs = Array.from({ length: 500 }, () => script(clusterId, { script: randomScript() }))
    const { usage } = await used(() => Batch.submit(caller, { jobs }))
    expect(usage.calls).toEqual(['BatchGetItem', 'TransactWriteItems', 'SendMessage'])
    expect(usage.writeUnits).toBeLessThanOrEqual(750)
  })
})

describe('all or nothing', () => {
  test('501 jobs are refused before any of them is looked at', async () => {
    const caller = await callerOf()
    const { result, usage } = await used(() => refusalOf(Batch.submit(caller, { jobs: Array(501).fill('no job') })))
    expect(result).toBe('batch_limit_exceeded')
    expect(usage.calls).toEqual([])
    expect(await isUntouched(caller.organisationId)).toBe(true)
  })

  test.each([0, 250, 499])(
    'one foreign, unknown or impossible cluster at position %i refuses all 500',
    async (position) => {
      const [caller, neighbour] = [await callerOf(), await callerOf()]
      const clusters = await manyClusters(caller, 500)
      const [foreign = ''] = await manyClusters(neighbour, 1)
      for (const clusterId of [foreign, unknownCluster, '#', 'clus_']) {
        const jobs = jobsFor(clusters.with(position, clusterId))
        const error: unknown = await Batch.submit(caller, { jobs }).catch((caught: unknown) => caught)
        expect(error).toBeInstanceOf(PlatformError)
        expect([(error as PlatformError).code, (error as PlatformError).extra]).toEqual(['cluster_forbidden', {}])
        expect((error as PlatformError).message).not.toContain(clusterId)
      }
      expect(await isUntouched(caller.organisationId)).toBe(true)
    },
  )

  test('what is wrong with single jobs is told for each of them, by its place', async () => {
    const caller = await callerOf()
    const [clusterId = ''] = await manyClusters(caller, 1)
    const jobs = [
      script(clusterId),
      script(clusterId, { script: '' }),
      7,
      { ...script(clusterId), payload: { script: 'a\0' } },
    ]
    const error: unknown = await Batch.submit(caller, { jobs }).catch((caught: unknown) => caught)
    expect((error as PlatformError).code).toBe('validation_failed')
    expect((error as PlatformError).extra.details?.map(({ path }) => path)).toEqual([
      '/jobs/1/payload/script',
      '/jobs/2',
      '/jobs/3/payload/script',
    ])
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
    const caller = await callerOf()
    const { cluster } = await enrolledCluster(caller)
    const jobs = [script(cluster.id), { ...script(cluster.id), ...change }, script(cluster.id)]
    expect(await refusalOf(Batch.submit(caller, { jobs }))).toBe(code)
    expect((await Batch.list(caller, { page: 1, pageSize: 20 })).totalCount).toBe(0)
  })

  test('jobs may name nodes of their own clusters', async () => {
    const caller = await callerOf()
    const worlds = [await enrolledCluster(caller), await enrolledCluster(caller, ['a', 'b'])]
    const targets = worlds.map(({ relay }) => relay.nodes.map(({ id }) => id))
    const jobOf = (place: number, nodes: number) =>
      script(worlds[place]?.cluster.id ?? '', { targetNodeIds: targets[nodes] })
    expect(await refusalOf(Batch.submit(caller, { jobs: [jobOf(0, 0), jobOf(0, 1)] }))).toBe('node_not_in_cluster')
    const { jobIds } = await Batch.submit(caller, { jobs: [jobOf(0, 0), jobOf(1, 1)] })
    expect((await Job.read(caller, jobIds[1] ?? '')).payload).toEqual({
      script: 'echo hello',
      targetNodeIds: targets[1],
    })
  })
})

describe('before the jobs stand in the table', () => {
  test('each id answers with its own job and payload at once, and to nobody else', async () => {
    const caller = await callerOf()
    const clusters = await manyClusters(caller, 3)
    const jobs = Array.from({ length: 500 }, (_, index) =>
      script(clusters[index % 3] ?? '', { script: `echo ${index}` }),
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
      expect(await refusalOf(Job.read(await callerOf(), job.id))).toBe('job_not_found')
    }
    expect(await rowsOf(caller, jobIds)).toEqual([])
    const page = await list(caller, { batchId, page: 3, pageSize: 100 })
    expect(page.totalCount).toBe(500)
    expect(page.items.map(({ id }) => id)).toEqual(jobIds.toReversed().slice(200, 300))
    expect((await list(caller, { batchId, clusterId: clusters[0], page: 1, pageSize: 1 })).totalCount).toBe(167)
    expect(await Batch.read(caller, batchId)).toMatchObject({
      status: 'Running',
      submittedCount: 500,
      counts: { queued: 500 },
    })
    expect(await refusalOf(Batch.read(await callerOf(), batchId))).toBe('batch_not_found')
  })

  test('an id behind the last job of a batch is not found, before and after', async () => {
    const caller = await callerOf()
    const [clusterId = ''] = await manyClusters(caller, 1)
    const { jobIds } = await Batch.submit(caller, { jobs: [script(clusterId)] })
    const next = (jobIds[0] ?? '').slice(0, -1) + '1'
    expect(await refusalOf(Job.read(caller, next))).toBe('job_not_found')
    const after = await expanded(caller, { jobs: [script(clusterId)] })
    expect(await refusalOf(Job.read(caller, (after.jobIds[0] ?? '').slice(0, -1) + '1'))).toBe('job_not_found')
  })

  test('jobs of every size up to 4 MB in all keep their payloads', async () => {
    const caller = await callerOf()
    const clusters = await manyClusters(caller, 2)
    const sizes = [
      190_000,
      1,
      ...Array.from({ length: 128 }, (_, index) => (index % 2 === 0 ? 12_000 : 34_000)),
      190_000,
      3,
    ]
    const scripts = sizes.map((size) => randomBytes(size).toString('base64'))
    const jobs = scripts.map((text, index) => script(clusters[index % 2] ?? '', { script: text }))
    expect(Buffer.byteLength(JSON.stringify(jobs))).toBeGreaterThan(4_100_000)
    const { batchId, jobIds } = await Batch.submit(caller, { jobs })
    for (const index of [0, 1, 2, 3, 64, 129, 130, 131]) {
      expect((await Job.read(caller, jobIds[index] ?? '')).payload).toEqual({ script: scripts[index] })
    }
    await tend(caller, batchId)
    const payloads = await Promise.all(jobIds.map(async (id) => (await Job.read(caller, id)).payload['script']))
    expect(payloads).toEqual(scripts)
  })
})
