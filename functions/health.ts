import { live, ready, startup } from '@platform/contract/health'
import * as Health from '@platform/core/platform/health'
import { answer } from '@platform/http/result'
import { route } from '@platform/http/route'
import { serve } from '@platform/http/serve'

export const handler = serve(
  route(live, () => answer(200, { status: 'ok' })),
  route(ready, async () => {
    const { ready: isReady, body } = await Health.ready()
    return answer(isReady ? 200 : 503, body)
  }),
  route(startup, async () =>
    (await Health.started()) ? answer(200, { status: 'ok' }) : answer(503, { status: 'unavailable' }),
  ),
)
