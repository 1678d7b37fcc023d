import type { EndpointDefinition } from '@platform/contract/endpoint'
import type { Caller, RelayCaller } from '@platform/core/caller'
import { addLogFields } from '@platform/core/log'
import { parseBody, parsePart } from '@platform/core/lib/validate'
import { createApp, toHonoHandler } from './app.ts'
import { authenticate, identityOf, requirePermission } from './authorize.ts'
import { lazyJson, readBody } from './body.ts'
import type { HttpContext } from './context.ts'
import { type GatewayEvent, type GatewayResult, headersOf, refuseLargeBody, toResult } from './event.ts'
import { limit } from './rate-limits.ts'
import { withIdempotency } from './idempotency.ts'
import { type WithVersionProbe, withVersionProbe } from './version-probe.ts'
import { readQuery } from './query.ts'
import type { HttpResponse } from './response.ts'
import { toHttpResponse } from './to-response.ts'
import type { Route } from './route.ts'
import { refuseCrossOrigin } from './same-origin.ts'
import { keyedSemaphore } from './keyed-semaphore.ts'

/** One Lambda function that answers some endpoints. Whatever else it is asked answers `route_not_found`. */
export function serve(...routes: Route[]): WithVersionProbe<GatewayEvent, GatewayResult> {
  const app = createApp((it) => {
    for (const route of routes.toSorted(literalFirst)) {
      const { method, path } = route.endpoint
      it.on(
        method,
        path.replaceAll(/\{(\w+)\}/g, ':$1'),
        toHonoHandler((context) => perform(context, route)),
      )
    }
  })
  return withVersionProbe(async (event) => toResult(await app(event)))
}

/** Hono takes the first route that fits; `{` sorts behind every letter, so that a literal segment goes first. */
const literalFirst = (a: Route, b: Route): number => (a.endpoint.path < b.endpoint.path ? -1 : 1)

/** The way of one request. What comes first here is what a caller hears of when several things are wrong. */
async function perform(context: HttpContext, route: Route): Promise<HttpResponse> {
  const { event } = context.env
  const { endpoint } = route
  const { access } = endpoint
  const address = event.requestContext.http.sourceIp
  context.set('access', access)
  addLogFields({ route: endpoint.path })

  refuseLargeBody(event)
  if (endpoint.sameOriginOnly) refuseCrossOrigin(event)
  const caller = await authenticate(access, event)
  addLogFields(identityOf(caller))
  requirePermission(access, caller)
  const json = lazyJson(event)
  limit(context, endpoint, { caller, address, json })
  const parts = checkParts(context, endpoint, readBody(endpoint, json, event))
  const answer = await inTurn(endpoint, caller, () =>
    withIdempotency(endpoint, event, caller, (who) =>
      route.handle({ ...parts, caller: who, origin: { address }, headers: headersOf(event) }),
    ),
  )
  return toHttpResponse(context, endpoint, answer)
}

/** More requests of one organisation at once would be answered later each, and those of its neighbours, too. */
const forOrganisations = keyedSemaphore(4)

/** Works on a request when it is its organisation's turn. One that waits for something to happen stands in nobody's way. */
function inTurn<Result>(
  { mayWait }: EndpointDefinition,
  caller: Caller | RelayCaller | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  return caller === undefined || mayWait ? work() : forOrganisations(`${caller.kind} ${caller.organisationId}`, work)
}

/** The parts of a request that the endpoint has a schema for, valid. */
function checkParts(context: HttpContext, endpoint: EndpointDefinition, body: unknown) {
  const { params, query, body: schema, bodyCheckedByVerb } = endpoint.request ?? {}
  return {
    params: params && parsePart('path', params, context.req.param()),
    query: query && parsePart('query', query, readQuery(endpoint, context.env.event)),
    body: schema && !bodyCheckedByVerb ? parseBody(schema, body) : body,
  }
}
