import { applyUpdate, checkForUpdate } from '@platform/contract/update'
import { update } from '@platform/core/updates/request'
import { check } from '@platform/core/updates/check'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(checkForUpdate, async ({ caller }) => result(200, await check(caller))),
  route(applyUpdate, async ({ caller, body }) => result(202, await update(caller, body))),
)
