import { createSite, deleteSite, listSites } from '@platform/contract/site'
import * as Site from '@platform/core/clusters/site'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(listSites, async ({ caller }) => result(200, await Site.list(caller))),
  route(createSite, async ({ caller, body }) => result(201, await Site.create(caller, body))),
  route(deleteSite, async ({ caller, params }) => {
    await Site.remove(caller, params.id)
    return result(204)
  }),
)
