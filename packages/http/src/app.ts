import { platformError } from '@platform/core/error'
import { HonoBase as Hono } from 'hono/hono-base'
import { TrieRouter } from 'hono/router/trie-router'
import type { HttpContext, HttpEnv } from './context.ts'
import type { GatewayEvent } from './event.ts'
import { failure } from './error-response.ts'
import { withRequestLog } from './request-log.ts'
import { rejectInvalidPath } from './path.ts'
import type { HttpResponse } from './response.ts'

/** Answers a request that a function was handed. */
export type App = (event: GatewayEvent) => Promise<HttpResponse>

/**
 * Hono asks a request for its method, and hands on what a handler returns as it is. With plain objects for both, a process
 * loads none of `fetch`, which would take a tenth of the time to its first answer.
 */
export const toHonoHandler =
  (handle: (context: HttpContext) => Promise<HttpResponse>) =>
  async (context: HttpContext): Promise<Response> =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Hono's types know web responses only
    (await handle(context)) as unknown as Response

/** An app of Hono with what all functions that answer requests have in common; `route` adds what it answers. */
export function createApp(route: (app: Hono<HttpEnv>) => void): App {
  const app = new Hono<HttpEnv>({
    router: new TrieRouter(),
    getPath: (_request, options) => options?.env?.event.rawPath ?? '',
  })
  app.use(rejectInvalidPath)
  // What Hono would answer by itself is no reply of ours.
  app.notFound(toHonoHandler((context) => failure(platformError('route_not_found'), context)))
  route(app)
  app.onError((error, context) => toHonoHandler((it) => failure(error, it))(context))
  return (event) =>
    withRequestLog(event, async (headers) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see `handling`
      const [request, answered] = [requestOf(event) as Request, (it: Response) => it as unknown as HttpResponse]
      return answered(await app.fetch(request, { event, headers }))
    })
}

const methods = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** What Hono routes by; path, headers and body are read from the event. To Hono HEAD is a kind of GET; here it has no route. */
const requestOf = ({ requestContext: { http } }: GatewayEvent) => ({
  method: methods.has(http.method) ? http.method : 'OPTIONS',
})
