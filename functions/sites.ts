import { createSite, deleteSite, listSites } from '@platform/contract/site'
import * as Site from '@platform/core/clusters/site'
import { answer } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(listSites, async ({ caller }) => answer(200, await Site.list(caller))),
  route(createSite, async ({ caller, body }) => answer(201, await Site.create(caller, body))),
  route(deleteSite, async ({ caller, params }) => {
    await Site.remove(caller, params.id)
    return answer(204)
  }),
)
