import { getHistory } from '@platform/contract/history'
import { getNavigation, getPortalConfiguration, getPortalSummary } from '@platform/contract/portal'
import { readHistory } from '@platform/core/dashboard/history'
import { navigation } from '@platform/core/dashboard/navigation'
import { portalConfiguration } from '@platform/core/dashboard/portal-configuration'
import { readPortalSummary } from '@platform/core/dashboard/summary'
import { result, withEtag } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(getPortalConfiguration, async () => result(200, await portalConfiguration())),
  route(getPortalSummary, async ({ caller }) => withEtag(await readPortalSummary(caller))),
  route(getHistory, async ({ caller, query }) => withEtag(await readHistory(caller, query.hours))),
  route(getNavigation, async ({ caller }) => withEtag(await navigation(caller))),
)
