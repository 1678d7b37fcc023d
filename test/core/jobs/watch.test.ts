import { beforeAll, expect, test } from 'vitest'
import { shiftClock } from '@platform/core/clock'
import * as Job from '@platform/core/jobs/job'
import { claim } from '@platform/core/jobs/claim'
import { append, readOutput } from '@platform/core/jobs/output'
import { callerOf, enrolledCluster, refusalOf, started } from '../../support/world.ts'
import { runJob, waitingJob } from '../support/jobs.ts'
import { used } from '../support/usage.ts'

beforeAll(started)

const patience = 20

test('who watches a job gets its output soon after it comes, and its end at once', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const watched = readOutput(caller, jobId, 0, patience)
  const { leaseId } = await claim(world.request(), jobId, undefined)
  await append(world.request(), jobId, { leaseId, seq: 0, nodeId: 'node', stream: 'stdout', data: 'one' })
  expect(await watched).toMatchObject({ items: [{ data: 'one' }], nextOffset: 3, status: 'Running', finished: false })
  const next = readOutput(caller, jobId, 3, patience)
  await append(world.request(), jobId, { leaseId, seq: 1, nodeId: 'node', stream: 'stdout', data: 'two' })
  expect(await next).toMatchObject({ items: [{ offset: 3, data: 'two' }], nextOffset: 6 })
  const last = readOutput(caller, jobId, 6, patience)
  await Job.cancel(caller, jobId)
  shiftClock(patience * 1000)
  expect(await last).toMatchObject({ items: [], nextOffset: 6, status: 'Running' })
  shiftClock(-patience * 1000)
})

test('what is there already, or will never come, is not waited for', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  await runJob(world, jobId)
  const { result, usage } = await used(() => readOutput(caller, jobId, 0, patience))
  expect(result).toMatchObject({ items: [], finished: true })
  expect(usage.calls).toEqual(['GetItem'])
  expect(await refusalOf(readOutput(await callerOf(), jobId, 0, patience))).toBe('job_not_found')
})

test('a second of waiting is a few looks', async () => {
  const caller = await callerOf()
  const world = await enrolledCluster(caller)
  const jobId = await waitingJob(caller, world)
  const startedAtMs = performance.now()
  const { result, usage } = await used(() => readOutput(caller, jobId, 0, 1))
  expect(performance.now() - startedAtMs).toBeGreaterThan(950)
  expect(result).toEqual({ items: [], nextOffset: 0, status: 'Queued', finished: false })
  expect(usage.calls.length).toBeLessThanOrEqual(4)
})
