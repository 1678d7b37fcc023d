import { live, ready, startup } from '@platform/contract/health'
import * as Health from '@platform/core/platform/health'
import { result } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(live, () => result(200, { status: 'ok' })),
  route(ready, async () => {
    const { ready: isReady, body } = await Health.ready()
    return result(isReady ? 200 : 503, body)
  }),
  route(startup, async () =>
    (await Health.isStarted()) ? result(200, { status: 'ok' }) : result(503, { status: 'unavailable' }),
  ),
)
