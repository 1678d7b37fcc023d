import { claimJob, completeJob, completeJobs, enroll, goodbye, heartbeat, reportOutput } from '@platform/contract/relay'
import { enrollRelay } from '@platform/core/relays/enroll-with-key'
import { claim } from '@platform/core/jobs/claim'
import { complete, completeAll } from '@platform/core/jobs/complete'
import * as Output from '@platform/core/jobs/output'
import * as Presence from '@platform/core/relays/heartbeat'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(enroll, async ({ body, origin }) => result(201, await enrollRelay(body, origin))),
  route(heartbeat, async ({ caller, body }) => result(200, await Presence.heartbeat(caller, body))),
  route(claimJob, async ({ caller, params, headers, body }) =>
    result(200, await claim(caller, params.id, headers['idempotency-key'], body)),
  ),
  route(reportOutput, async ({ caller, params, body }) => result(200, await Output.append(caller, params.id, body))),
  route(completeJob, async ({ caller, params, body }) => result(200, await complete(caller, params.id, body))),
  route(completeJobs, async ({ caller, body }) =>
    result(200, { results: await completeAll(caller, body.completions) }),
  ),
  route(goodbye, async ({ caller, body }) => {
    await Presence.goodbye(caller, body)
    return result(204)
  }),
)
