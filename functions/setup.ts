import { completeSetup, getSetupStatus } from '@platform/contract/setup'
import * as Setup from '@platform/core/platform/setup'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(getSetupStatus, async () => result(200, await Setup.status())),
  route(completeSetup, async ({ body, origin }) => result(200, await Setup.complete(body, origin))),
)
