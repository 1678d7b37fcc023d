import { type Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { readUserToken, type RequestEnvironment } from './caller.ts'
import { healthAnswer, controlError } from './control.ts'
import { type HealthChecks } from './health.ts'
import { HookError, toHookError } from './hook-error.ts'
import { type ModuleHost } from './host.ts'
import { type Logger } from './logger.ts'
import { notAskedHeader, tokenHeader, userHeader } from './protocol.ts'

/** Sets the default responses for unknown routes and errors. A module may override both. */
export function setDefaults(app: Hono, log: Logger): void {
  app.notFound((c) => c.json({ error: 'route_not_found', message: 'The module has no such route.' }, 404))
  app.onError((error, c) => {
    if (error instanceof HTTPException) return error.getResponse()
    log.error('A request failed', { method: c.req.method, path: c.req.path, error })
    return c.json({ error: 'internal_error', message: 'The module failed.' }, 500)
  })
}

/** Handles requests outside of the control API: single health checks, and the module's routes. */
export async function handleRequest(host: ModuleHost, health: HealthChecks, request: Request): Promise<Response> {
  try {
    await host.whenStarted()
  } catch (error) {
    const { error: code, message } = toHookError(error)
    return Response.json({ error: code, message }, { status: 503, headers: { [notAskedHeader]: '1' } })
  }
  const check = request.method === 'GET' ? checkNameOf(host, request) : undefined
  return check === undefined ? host.during(callRoute(host, request)) : healthAnswer(health, check)
}

function checkNameOf({ definition }: ModuleHost, { url }: Request): string | undefined {
  const [, name = ''] = /^\/health\/([^/]+)$/.exec(new URL(url).pathname) ?? []
  return Object.hasOwn(definition.healthChecks ?? {}, name) ? name : undefined
}

async function callRoute({ app, definition }: ModuleHost, request: Request): Promise<Response> {
  const user = request.headers.get(userHeader)
  const caller = user === null ? undefined : readUserToken(user, definition.id)
  if (user !== null && !caller) {
    return controlError(new HookError('forbidden', 'The user token is not for this module, or has expired.'))
  }
  const headers = new Headers(request.headers)
  // Removes secrets of the platform, which a route could otherwise return or log.
  for (const name of [tokenHeader, userHeader]) headers.delete(name)
  const environment: RequestEnvironment = caller ? { caller } : {}
  return app.fetch(new Request(request, { headers }), environment)
}
