import { bodySchemaOf, type EndpointDefinition, isIdempotent } from '@platform/contract/endpoint'
import { addLogFields } from '@platform/core/log'
import { parseBody, parsePart } from '@platform/core/lib/validate'
import { createApp, toHonoHandler } from './app.ts'
import { authenticate, identityOf, requirePermission } from './authorize.ts'
import { lazyJson, readBody, type GatewayEvent, headersOf, rejectLargeBody, readQuery } from './request.ts'
import type { HttpContext } from './context.ts'
import { limit } from './rate-limit.ts'
import { withIdempotency } from './idempotency.ts'
import { type WithVersionProbe, withVersionProbe } from './version-probe.ts'
import { type HttpResponse, type GatewayResult, toResult, toHttpResponse } from './response.ts'
import type { Route } from './route.ts'
import { rejectCrossOrigin } from './same-origin.ts'

/** Creates the Lambda function for some endpoints. Other paths return `route_not_found`. */
export function serve(...routes: Route[]): WithVersionProbe<GatewayEvent, GatewayResult> {
  const app = createApp((hono) => {
    for (const route of routes.toSorted(literalFirst)) {
      const { method, path } = route.endpoint
      hono.on(
        method,
        path.replaceAll(/\{(\w+)\}/g, ':$1'),
        toHonoHandler((context) => perform(context, route)),
      )
    }
  })
  return withVersionProbe(async (event) => toResult(await app(event)))
}

// Hono uses the first matching route. `{` sorts after letters, so literal segments come first.
const literalFirst = (a: Route, b: Route): number => (a.endpoint.path < b.endpoint.path ? -1 : 1)

// The order of the checks decides which error a caller receives if several apply.
async function perform(context: HttpContext, route: Route): Promise<HttpResponse> {
  const { event } = context.env
  const { endpoint } = route
  const { access } = endpoint
  const address = event.requestContext.http.sourceIp
  context.set('access', access)
  addLogFields({ route: endpoint.path })

  rejectLargeBody(event)
  if (endpoint.sameOriginOnly) rejectCrossOrigin(event)
  const caller = await authenticate(access, event)
  addLogFields(identityOf(caller))
  requirePermission(access, caller)
  const json = lazyJson(event)
  limit(context, endpoint, { caller, address, json })
  const parts = validateParts(context, endpoint, readBody(endpoint, json, event))
  const handle = (current: typeof caller) =>
    route.handle({ ...parts, caller: current, origin: { address }, headers: headersOf(event) })
  const result = await (isIdempotent(endpoint) ? withIdempotency(endpoint, event, caller, handle) : handle(caller))
  return toHttpResponse(context, endpoint, result)
}

function validateParts(context: HttpContext, endpoint: EndpointDefinition, body: unknown) {
  const { params, query } = endpoint.request ?? {}
  const schema = bodySchemaOf(endpoint)
  return {
    params: params && parsePart('path', params, context.req.param()),
    query: query && parsePart('query', query, readQuery(endpoint, context.env.event)),
    body: schema && !endpoint.validatesBody ? parseBody(schema, body) : body,
  }
}
