import { setTimeout as sleep } from 'node:timers/promises'
import { unwrap } from '../api/unwrap.ts'
import type { Api, Schemas } from '../api/client.ts'
import { readList } from '../api/pages.ts'
import { getJob } from './job.ts'

export type AcceptedBatch = Pick<Schemas['AcceptedBatch'], 'batchId' | 'jobIds'>
export type BatchCounts = Schemas['BatchCounts']
type JobSummary = Schemas['JobSummary']

/** Receives the progress of batches. `onEnded` is called once for each job. */
export interface BatchListener {
  onCounts: (batchId: string, counts: BatchCounts) => void
  onEnded: (job: JobSummary) => Promise<void>
}

const firstPauseMs = 250
const longestPauseMs = 1000

export const getBatch = (api: Api, batchId: string): Promise<Schemas['Batch']> =>
  unwrap(api.GET('/api/v1/jobs/batch/{batchId}', { params: { path: { batchId } } }))

export const jobsOfBatch = (api: Api, batchId: string, status?: JobSummary['status']) =>
  readList({ limit: Infinity, all: true }, (paging) =>
    unwrap(api.GET('/api/v1/jobs', { params: { query: { batchId, ...(status && { status }), ...paging } } })),
  )

export const endedCountOf = ({ completed, failed, cancelled }: BatchCounts): number => completed + failed + cancelled

const hasEnded = ({ status }: JobSummary): boolean => status !== 'Queued' && status !== 'Running'

/** Follows batches until all jobs have ended. Many batches, and batches with many jobs, are polled less often. */
export async function followBatches(
  api: Api,
  batches: readonly AcceptedBatch[],
  listener: BatchListener,
): Promise<void> {
  const pauseFactor = (jobCount: number): number => Math.max(1, batches.length / 3, jobCount / 200)
  await Promise.all(batches.map((batch) => followBatch(api, batch, listener, pauseFactor(batch.jobIds.length))))
}

async function followBatch(
  api: Api,
  { batchId, jobIds }: AcceptedBatch,
  listener: BatchListener,
  pauseFactor: number,
): Promise<void> {
  const openJobIds = new Set(jobIds)
  const close = async (job: JobSummary): Promise<void> => {
    if (hasEnded(job) && openJobIds.delete(job.id)) await listener.onEnded(job)
  }
  for (let count = 0; ; count++) {
    const { counts, status } = await getBatch(api, batchId)
    listener.onCounts(batchId, counts)
    if (endedCountOf(counts) > jobIds.length - openJobIds.size) {
      for (const job of (await jobsOfBatch(api, batchId)).items.toReversed()) await close(job)
    }
    // Lists may not contain the latest changes; a read by id does.
    if (status === 'Finished') for (const id of openJobIds) await close(await getJob(api, id))
    if (openJobIds.size === 0) return
    await sleep(pauseMsOf(count) * pauseFactor)
  }
}

/** Returns the pause before the next poll, in milliseconds. It grows with the number of polls, up to one second. */
export const pauseMsOf = (count: number): number => Math.min(longestPauseMs, firstPauseMs * 1.3 ** count)

/** Requests the cancellation of a batch. Does nothing if the batch has finished. */
export async function cancelBatch(api: Api, batchId: string): Promise<void> {
  const { error, response } = await api.POST('/api/v1/jobs/batch/{batchId}/cancel', { params: { path: { batchId } } })
  if (error && error.error !== 'batch_already_finished') await unwrap(Promise.resolve({ error, response }))
}

/** Splits clusters into batches within the limit of the API: 500 jobs. */
export const batchesOf = (clusterIds: readonly string[]): string[][] =>
  Array.from({ length: Math.ceil(clusterIds.length / maxJobs) }, (_, index) =>
    clusterIds.slice(index * maxJobs, (index + 1) * maxJobs),
  )

const maxJobs = 500
