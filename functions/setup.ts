import { completeSetup, getSetupStatus } from '@platform/contract/setup'
import * as Setup from '@platform/core/platform/setup'
import { answer } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(getSetupStatus, async () => answer(200, await Setup.status())),
  route(completeSetup, async ({ body, origin }) => answer(200, await Setup.complete(body, origin))),
)
