import { cancelJob, getJob, getJobOutput, submitJob } from '@platform/contract/job'
import * as Job from '@platform/core/job'
import { readOutput } from '@platform/core/output'
import { answer } from '@platform/http/answer'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(submitJob, async ({ caller, body }) => answer(202, await Job.submit(caller, body))),
  route(getJob, async ({ caller, params }) => answer(200, await Job.read(caller, params.id))),
  route(cancelJob, async ({ caller, params }) => answer(202, await Job.cancel(caller, params.id))),
  route(getJobOutput, async ({ caller, params, query }) =>
    answer(200, await readOutput(caller, params.id, query.offset)),
  ),
)
