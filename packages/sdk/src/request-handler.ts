import type { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { readUserToken, type RequestEnvironment } from './caller.ts'
import { toErrorResponse, controlOf, healthResponse } from './control.ts'
import { HealthChecks } from './health.ts'
import { HookError, toHookError } from './hook-error.ts'
import type { ModuleHost } from './host.ts'
import type { Logger } from './logger.ts'
import { controlPath, notAskedHeader, publishedHeader, tokenHeader, userHeader } from './protocol.ts'
import { createTokenCheck } from './token-check.ts'

/** Handles a request that arrived by any transport. */
export type RequestHandler = (request: Request) => Promise<Response>

/** Creates the request handler of an instance. All requests except `GET /health` require the deployment's token. */
export function requestHandlerOf(host: ModuleHost, token: string): RequestHandler {
  const health = new HealthChecks(host)
  const control = controlOf(host, health)
  const isValidToken = createTokenCheck(token)
  setDefaults(host.app, host.context.getLogger('routes'))

  async function handle(request: Request, path: string): Promise<Response> {
    if (!path.startsWith(`${controlPath}/`)) return handleModuleRequest(host, health, request)
    // Users must not reach the control API, even if a gateway forwards its path.
    return request.headers.has(userHeader) ? forbiddenResponse() : control.fetch(request)
  }

  return async (request) => {
    const path = new URL(request.url).pathname
    if (request.method === 'GET' && path === '/health') return respondWithHealth(host, health)
    if (!isValidToken(request.headers.get(tokenHeader))) return forbiddenResponse()
    const response = await handle(request, path)
    // If the client has disconnected, published events stay queued for the next response.
    return withPublishedEvents(response, request.signal.aborted ? undefined : host.bus.outbox.take())
  }
}

const forbiddenResponse = (): Response =>
  toErrorResponse(new HookError('forbidden', 'Only the platform may send this request.'))

async function respondWithHealth(host: ModuleHost, health: HealthChecks): Promise<Response> {
  // If the module cannot start, the health response shows its state.
  await host.whenStarted().catch(() => {})
  const aggregate = await health.aggregate()
  return Response.json(aggregate, { status: aggregate.status === 'Unhealthy' ? 503 : 200 })
}

function withPublishedEvents(response: Response, eventsHeader: string | undefined): Response {
  const headers = new Headers(response.headers)
  headers.delete(publishedHeader)
  if (eventsHeader !== undefined) headers.set(publishedHeader, eventsHeader)
  return new Response(response.body, { status: response.status, headers })
}

// Sets default handlers before the module adds its own, so that the module can override them.
function setDefaults(app: Hono, log: Logger): void {
  app.notFound((c) => c.json({ error: 'route_not_found', message: 'The module has no such route.' }, 404))
  app.onError((error, c) => {
    if (error instanceof HTTPException) return error.getResponse()
    log.error('A request failed', { method: c.req.method, path: c.req.path, error })
    return c.json({ error: 'internal_error', message: 'The module failed.' }, 500)
  })
}

async function handleModuleRequest(host: ModuleHost, health: HealthChecks, request: Request): Promise<Response> {
  try {
    await host.whenStarted()
  } catch (error) {
    const { error: code, message } = toHookError(error)
    return Response.json({ error: code, message }, { status: 503, headers: { [notAskedHeader]: '1' } })
  }
  const checkName = request.method === 'GET' ? checkNameOf(host, request) : undefined
  return checkName === undefined ? host.trackRequest(callRoute(host, request)) : healthResponse(health, checkName)
}

function checkNameOf({ definition }: ModuleHost, { url }: Request): string | undefined {
  const [, name = ''] = /^\/health\/([^/]+)$/.exec(new URL(url).pathname) ?? []
  return Object.hasOwn(definition.healthChecks ?? {}, name) ? name : undefined
}

async function callRoute({ app, definition }: ModuleHost, request: Request): Promise<Response> {
  const userToken = request.headers.get(userHeader)
  const caller = userToken === null ? undefined : readUserToken(userToken, definition.id)
  if (userToken !== null && !caller) {
    return toErrorResponse(new HookError('forbidden', 'The user token is not for this module, or has expired.'))
  }
  const headers = new Headers(request.headers)
  // A route could return or log these secrets of the platform.
  for (const name of [tokenHeader, userHeader]) headers.delete(name)
  const environment: RequestEnvironment = caller ? { caller } : {}
  return app.fetch(new Request(request, { headers }), environment)
}
