import { getHistory } from '@platform/contract/history'
import { getNavigation, getPortalConfiguration, getPortalSummary } from '@platform/contract/portal'
import { readHistory } from '@platform/core/dashboard/history'
import { navigation } from '@platform/core/dashboard/navigation'
import { portalConfiguration } from '@platform/core/dashboard/portal-configuration'
import { portalSummary } from '@platform/core/dashboard/summary'
import { answer } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'
import { tagged } from '@platform/http/etag'

export const handler = serve(
  route(getPortalConfiguration, async () => answer(200, await portalConfiguration())),
  route(getPortalSummary, async ({ caller }) => tagged(await portalSummary(caller))),
  route(getHistory, async ({ caller, query }) => tagged(await readHistory(caller, query.hours))),
  route(getNavigation, async ({ caller }) => tagged(await navigation(caller))),
)
