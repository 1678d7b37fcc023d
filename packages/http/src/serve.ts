import {
  allowsUnknownInput,
  bodySchemaOf,
  type EndpointDefinition,
  isIdempotent,
  takesForm,
} from '@platform/contract/endpoint'
import { statusOf } from '@platform/contract/errors'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { PlatformError } from '@platform/core/error'
import { addLogFields } from '@platform/core/log'
import { parseBody, parsePart } from '@platform/core/lib/validate'
import * as z from 'zod'
import { createApp, toHonoHandler } from './app.ts'
import { authenticate, identityOf, requirePermission } from './authorize.ts'
import {
  continueResponse,
  lazyJson,
  type LazyJson,
  readBody,
  type GatewayEvent,
  headersOf,
  rejectLargeBody,
  readQuery,
} from './request.ts'
import type { HttpContext } from './context.ts'
import { enforceRateLimit } from './rate-limit.ts'
import { withIdempotency } from './idempotency.ts'
import { type WithVersionProbe, withVersionProbe } from './version-probe.ts'
import { type HttpResponse, type GatewayResult, respondToOtherMethod, toResult, toHttpResponse } from './response.ts'
import type { Route } from './route.ts'
import { rejectCrossOrigin } from './same-origin.ts'

/**
 * Creates a Lambda function that serves the routes. Requests for other paths fail with `route_not_found`, and other
 * methods of a known path with `method_not_allowed`, except OPTIONS.
 */
export function serve(...routes: Route[]): WithVersionProbe<GatewayEvent, GatewayResult> {
  const byPath = Map.groupBy(routes, ({ endpoint }) => endpoint.path)
  const app = createApp((hono) => {
    // Hono uses the first matching route. `{` sorts after letters, so literal segments come first.
    for (const [path, pathRoutes] of [...byPath].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      hono.get(
        path.replaceAll(/\{(\w+)\}/g, ':$1'),
        toHonoHandler((context) => selectMethod(context, pathRoutes)),
      )
    }
  })
  return withVersionProbe(async (event) => toResult(await app(event)))
}

async function selectMethod(context: HttpContext, routes: readonly Route[]): Promise<HttpResponse> {
  const { method } = context.env.event.requestContext.http
  const servedMethod = method === 'HEAD' ? 'GET' : method
  const route = routes.find(({ endpoint }) => endpoint.method.toUpperCase() === servedMethod)
  if (route !== undefined) return perform(context, route)
  return respondToOtherMethod(
    method,
    routes.map(({ endpoint }) => endpoint.method.toUpperCase()),
  )
}

// The order of the checks decides which error a caller receives if more than one applies.
async function perform(context: HttpContext, route: Route): Promise<HttpResponse> {
  const { event } = context.env
  const { endpoint } = route
  const { access } = endpoint
  context.set('access', access)
  addLogFields({ route: endpoint.path })

  rejectLargeBody(event, endpoint)
  if (endpoint.sameOriginOnly) await rejectCrossOrigin(event)
  const caller = await authenticate(access, event)
  addLogFields(identityOf(caller))
  try {
    return await performAs(caller, context, route)
  } catch (error) {
    if (caller?.kind === 'user' && error instanceof PlatformError && statusOf(error.code) === 403) {
      // Loads the module on demand, for a fast cold start.
      const { recordDenied } = await import('@platform/core/audit/counted-entries')
      await recordDenied(caller, `${endpoint.method.toUpperCase()} ${endpoint.path}`, error)
    }
    throw error
  }
}

async function performAs(
  caller: Caller | RelayCaller | undefined,
  context: HttpContext,
  route: Route,
): Promise<HttpResponse> {
  const { event } = context.env
  const { endpoint } = route
  const address = event.requestContext.http.sourceIp
  requirePermission(endpoint.access, caller)
  if (event.isBodyPending) return continueResponse(endpoint)
  const json = lazyJson(endpoint, event)
  await enforceRateLimit(endpoint, { caller, address, json })
  const parts = validateParts(context, endpoint, json)
  const handle = (currentCaller: typeof caller) =>
    route.handle({ ...parts, caller: currentCaller, origin: { address }, headers: headersOf(event) })
  const result = await (isIdempotent(endpoint) ? withIdempotency(endpoint, event, caller, handle) : handle(caller))
  return toHttpResponse(context, endpoint, result)
}

const emptyObject = z.strictObject({})

/** Whether the body is read if the endpoint defines none, so that its members are rejected. */
const isBodyUnexpected = (endpoint: EndpointDefinition, { body }: GatewayEvent): boolean =>
  Boolean(body) && endpoint.method !== 'get' && !takesForm(endpoint) && !allowsUnknownInput(endpoint)

function validateParts(context: HttpContext, endpoint: EndpointDefinition, json: LazyJson) {
  const { event } = context.env
  const { params, query = allowsUnknownInput(endpoint) ? undefined : emptyObject } = endpoint.request ?? {}
  const schema = bodySchemaOf(endpoint) ?? (isBodyUnexpected(endpoint, event) ? emptyObject : undefined)
  return {
    params: params && parsePart('path', params, context.req.param()),
    query: query && parsePart('query', query, readQuery(endpoint, event, json)),
    body: schema && checkBody(endpoint, schema, readBody(endpoint, json, event)),
  }
}

const checkBody = ({ validatesBody }: EndpointDefinition, schema: z.ZodType, body: unknown): unknown =>
  validatesBody ? body : parseBody(schema, body)
