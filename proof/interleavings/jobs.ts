import * as Batch from '@platform/core/jobs/batches/batch'
import { advanceBatch } from '@platform/core/jobs/batches/advance'
import { type Caller } from '@platform/core/caller'
import * as Cluster from '@platform/core/clusters/cluster'
import * as keys from '@platform/core/db/keys'
import { query } from '@platform/core/db/table'
import * as Job from '@platform/core/jobs/job'
import { claim, complete } from '@platform/core/jobs/claim'
import { completion, counters, inboxOf, runJob, script, waitingJob, type World } from '../../test/core/support/jobs.ts'
import { callerOf, enrolledCluster } from '../../test/support/world.ts'
import { recordsOf } from '../support/records.ts'
import { countOf, endsOf, must, mustEnd, type Scenario } from './scenario.ts'
import { interleaved } from './stage.ts'

const endNames = new Set(['job.completed', 'job.failed', 'job.cancelled'])

/** A relay that claims a job and reports its end twice at once, as after an answer that came late. */
const run = (world: World, jobId: string, exitCode: number) => async () => {
  const { leaseId } = await claim(world.request(), jobId, undefined)
  const report = () => complete(world.request(), jobId, completion(world, leaseId, exitCode))
  await Promise.all([report(), report()])
}

export const claims: Scenario = {
  claim: 'a job that is claimed twice and cancelled meanwhile is claimed once, ends once and is counted once',
  runs: { whole: 1000, short: 6 },
  callers: { min: 2, max: 4 },
  play: async (scheduler, count) => {
    const caller = await callerOf()
    const world = await enrolledCluster(caller)
    const jobId = await waitingJob(caller, world)
    const cancel = () => Job.cancel(caller, jobId)
    const work = [run(world, jobId, 0), cancel, run(world, jobId, 3), cancel].slice(0, count)
    const ends = endsOf(await interleaved(scheduler, work))
    mustEnd(ends, 'done', 'job_not_claimable', 'job_already_finished')
    const { status } = await Job.read(caller, jobId)
    must(['Completed', 'Failed', 'Cancelled'].includes(status), `The job is ${status}.`)
    must(String(await counters(caller, world)) === '0,0', `The counters are ${String(await counters(caller, world))}.`)
    must((await inboxOf(world.cluster.id)).length === 0, 'It stands in the inbox still.')
    const told = (await recordsOf(caller.organisationId)).flatMap(({ events }) => events.map(({ name }) => name))
    must(countOf(told, 'job.started') <= 1, 'It was started twice.')
    must(told.filter((name) => endNames.has(name)).length === 1, 'It did not end once.')
  },
}

export const removals: Scenario = {
  claim: 'a cluster is removed or gets jobs, alone or in a batch, never both',
  runs: { whole: 1000, short: 6 },
  callers: { min: 2, max: 4 },
  play: async (scheduler, count) => {
    const caller = await callerOf()
    const other = await Cluster.register(caller, { name: 'stays', type: 'Hypervisor' })
    const world = await enrolledCluster(caller)
    const { id } = world.cluster
    // A job that is there already ends meanwhile.
    const jobId = await waitingJob(caller, world)
    const work = [
      () => Cluster.remove(caller, id),
      async () => {
        await runJob(world, jobId)
        await Cluster.remove(caller, id)
      },
      () => submitBatch(caller, [other.id, id]),
      () => Job.submit(caller, script(id)),
    ].slice(0, count)
    const ends = endsOf(await interleaved(scheduler, work))
    const refusals = ['cluster_has_active_jobs', 'cluster_not_found', 'cluster_forbidden']
    mustEnd(ends, 'done', ...refusals)
    await mustBeWhole(caller, id)
  },
}

async function submitBatch(caller: Caller, clusterIds: readonly string[]): Promise<void> {
  const { batchId } = await Batch.submit(caller, { jobs: clusterIds.map((id) => script(id)) })
  await advanceBatch({ organisationId: caller.organisationId, batchId })
}

/** Every job has its cluster, unless it has ended; the cluster counts those that have not. */
async function mustBeWhole(caller: Caller, clusterId: string): Promise<void> {
  const { items } = await query({ index: 'gsi1', pk: keys.clusterJobs(clusterId) })
  const jobs = await Promise.all(items.map(({ pk }) => Job.read(caller, String(pk).split('#')[3] ?? '')))
  const active = jobs.filter(({ status }) => status === 'Queued' || status === 'Running').length
  const row = await Cluster.find(caller.organisationId, clusterId)
  must(row !== undefined || active === 0, `The cluster is gone, and has ${active} jobs.`)
  must(row === undefined || row.activeJobs === active, `The cluster counts ${row?.activeJobs} of ${active} jobs.`)
}
