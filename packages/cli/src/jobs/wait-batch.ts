import { setTimeout as sleep } from 'node:timers/promises'
import type { Api, Schemas } from '../api/client.ts'
import { exitCodes } from '../exit.ts'
import { Progress } from '../print/progress.ts'
import type { PrintOptions } from '../print/show.ts'
import { say, write, writeJson } from '../print/write.ts'
import { endedCountOf, getBatch, jobsOfBatch, pauseMsOf } from './batch.ts'
import { describeEnd, exitCodeOf, getJob } from './job.ts'

// Maximum number of failed and cancelled jobs to list individually.
const maxListed = 20

/** Waits until a batch has finished. Returns 0, or the exit code of the first submitted job that did not complete. */
export async function waitForBatch(
  api: Api,
  batchId: string,
  options: PrintOptions,
  nameOf: (clusterId: string) => string = (id) => id,
): Promise<number> {
  const progress = new Progress()
  for (let count = 0; ; count++) {
    const batch = await getBatch(api, batchId)
    const { counts, submittedCount: total } = batch
    if (batch.status === 'Finished') {
      progress.clear()
      await printBatch(options, batch)
      return counts.completed === total ? exitCodes.ok : firstExitCode(api, batchId, nameOf)
    }
    progress.update({
      total,
      endedCount: endedCountOf(counts),
      note: `running ${counts.running}, failed ${counts.failed}`,
    })
    await sleep(pauseMsOf(count))
  }
}

const printBatch = ({ json }: PrintOptions, batch: Schemas['Batch']): Promise<void> => {
  const { completed, failed, cancelled } = batch.counts
  const countsText = `${completed} completed, ${failed} failed, ${cancelled} cancelled`
  return json ? writeJson(batch) : write(`${batch.id} ${batch.status}: ${countsText}\n`)
}

// Ids sort by time of submission.
async function firstExitCode(api: Api, batchId: string, nameOf: (clusterId: string) => string): Promise<number> {
  const [failedJobs, cancelledJobs] = await Promise.all([
    jobsOfBatch(api, batchId, 'Failed'),
    jobsOfBatch(api, batchId, 'Cancelled'),
  ])
  const jobs = [...failedJobs.items, ...cancelledJobs.items].toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const listedJobs = await Promise.all(jobs.slice(0, maxListed).map(({ id }) => getJob(api, id)))
  for (const job of listedJobs) say(`${nameOf(job.clusterId ?? '')} (${job.id}): ${describeEnd(job)}`)
  if (jobs.length > listedJobs.length)
    say(`… and ${jobs.length - listedJobs.length} more. See: plat job list --batch ${batchId}`)
  return listedJobs[0] === undefined ? exitCodes.noExitCode : exitCodeOf(listedJobs[0])
}
