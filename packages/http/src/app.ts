import { platformError } from '@platform/core/error'
import { recordMetric, withMetrics } from '@platform/core/lib/metrics'
import { type RateLimitState, withRateLimitStates } from '@platform/core/lib/rate-limit-state'
import { traceIdOf } from '@platform/core/lib/trace'
import { log, withTrace } from '@platform/core/log'
import { HonoBase as Hono } from 'hono/hono-base'
import { TrieRouter } from 'hono/router/trie-router'
import type { HttpContext, HttpEnv } from './context.ts'
import { toErrorResponse, retryHeaders } from './error-response.ts'
import { type GatewayEvent, rejectInvalidPath } from './request.ts'
import type { HttpResponse } from './response.ts'
import { isFrontBypassed, withClientAddress } from './trusted-front.ts'

type App = (event: GatewayEvent) => Promise<HttpResponse>

/**
 * Adapts a handler to Hono, which only reads the method of the request and returns the response unchanged. Plain
 * objects avoid loading `fetch`, which would delay the first response.
 */
export const toHonoHandler =
  (handle: (context: HttpContext) => Promise<HttpResponse>) =>
  async (context: HttpContext): Promise<Response> =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Hono's types know web responses only
    (await handle(context)) as unknown as Response

/** Creates a Hono app with the behaviour that all API functions share. `addRoutes` adds the endpoints. */
export function createApp(addRoutes: (app: Hono<HttpEnv>) => void, checkPath = rejectInvalidPath): App {
  const app = new Hono<HttpEnv>({
    router: new TrieRouter(),
    getPath: (_request, options) => options?.env?.event.rawPath ?? '',
  })
  app.use(({ env }, next) => {
    if (env.isFrontBypassed) throw platformError('route_not_found')
    checkPath(env.event)
    return next()
  })
  app.notFound(toHonoHandler((context) => toErrorResponse(platformError('route_not_found'), context)))
  addRoutes(app)
  app.onError((error, context) => toHonoHandler((each) => toErrorResponse(error, each))(context))
  return (received) => {
    const event = withClientAddress(received)
    return withRequestLog(event, async (headers) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see `toHonoHandler`
      const [request, toResponse] = [routedRequest as Request, (web: Response) => web as unknown as HttpResponse]
      return toResponse(await app.fetch(request, { event, headers, isFrontBypassed: isFrontBypassed(received, event) }))
    })
  }
}

/** Hono matches only the path. `serve` selects the method, because Hono would respond to HEAD requests itself. */
const routedRequest = { method: 'GET' }

// Headers of every response. A response can override them.
const commonHeaders = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

// Runs a request in its trace, adds the common headers, logs one line and records metrics. `handle` may add to the
// headers that it receives; headers of its response take precedence.
function withRequestLog(
  { headers: { traceparent }, requestContext }: GatewayEvent,
  handle: (headers: Record<string, string>) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  const { method } = requestContext.http
  const traceId = traceIdOf(traceparent)
  const respond = async () => {
    const startedAtMs = performance.now()
    const headers = { ...commonHeaders, 'x-trace-id': traceId }
    const response = await withRateLimitStates(
      (state) => Object.assign(headers, rateLimitHeaders(state)),
      () => handle(headers),
    )
    const durationMs = Math.round(performance.now() - startedAtMs)
    const { status } = response
    log('info', 'request', { method, status, durationMs })
    recordRequestMetrics(status, durationMs)
    const body = method === 'HEAD' ? null : response.body
    return { ...response, body, headers: { ...headers, ...retryHeaders(response), ...response.headers } }
  }
  return withTrace({ traceId }, () => withMetrics(respond))
}

const rateLimitHeaders = ({ limit, remaining, resetSeconds }: RateLimitState) => ({
  'ratelimit-limit': String(limit),
  'ratelimit-remaining': String(remaining),
  'ratelimit-reset': String(resetSeconds),
})

function recordRequestMetrics(status: number, durationMs: number): void {
  recordMetric('Requests')
  recordMetric('RequestDuration', durationMs)
  recordMetric('ServerErrors', status >= 500 ? 1 : 0)
  if (status === 429) recordMetric('RateLimited')
}
