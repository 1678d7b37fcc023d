import { cancelBatch, getBatch, listBatches, retryBatch, submitBatch } from '@platform/contract/batch'
import { cancelJob, getJob, listJobs, submitJob } from '@platform/contract/job'
import { getBatchGroups, listBatchResults, listGroupClusters } from '@platform/contract/job-group'
import { getJobOutput } from '@platform/contract/job-output'
import * as Batch from '@platform/core/jobs/batches/batch'
import * as Groups from '@platform/core/jobs/batches/groups'
import * as Job from '@platform/core/jobs/job'
import { list } from '@platform/core/jobs/list'
import { readBytes, readOutput } from '@platform/core/jobs/output'
import { result, wantsBytes } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(submitJob, async ({ caller, body }) => result(202, await Job.submit(caller, body))),
  route(listJobs, async ({ caller, query }) => result(200, await list(caller, query))),
  route(getJob, async ({ caller, params }) => result(200, await Job.read(caller, params.id))),
  route(cancelJob, async ({ caller, params }) => result(202, await Job.cancel(caller, params.id))),
  route(getJobOutput, async ({ caller, params: { id }, query: { offset }, headers }) => {
    if (!wantsBytes(headers)) return result(200, await readOutput(caller, id, offset), { vary: 'accept' })
    const { bytes, nextOffset, hasMore } = await readBytes(caller, id, offset)
    const next = hasMore && { link: `</api/v1/jobs/${id}/output?offset=${nextOffset}>; rel="next"` }
    return result(200, bytes, { vary: 'accept', 'x-next-offset': String(nextOffset), ...next })
  }),
  route(submitBatch, async ({ caller, body }) => result(202, await Batch.submit(caller, body))),
  route(listBatches, async ({ caller, query }) => result(200, await Batch.list(caller, query))),
  route(getBatch, async ({ caller, params }) => result(200, await Batch.read(caller, params.batchId))),
  route(cancelBatch, async ({ caller, params }) => result(202, await Batch.cancel(caller, params.batchId))),
  route(retryBatch, async ({ caller, params }) => result(202, await Batch.retry(caller, params.batchId))),
  route(getBatchGroups, async ({ caller, params }) => result(200, await Groups.read(caller, params.batchId))),
  route(listGroupClusters, async ({ caller, params, query }) =>
    result(200, await Groups.listClusters(caller, params, query)),
  ),
  route(listBatchResults, async ({ caller, params, query }) =>
    result(200, await Groups.listResults(caller, params.batchId, query)),
  ),
)
