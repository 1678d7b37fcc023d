import { type Context, Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { eventsOf } from './event-request.ts'
import type { HealthChecks } from './health.ts'
import { HookError, toHookError } from './hook-error.ts'
import { defaultHookMs, type ModuleHost } from './host.ts'
import { Jobs } from './jobs.ts'
import type { ModuleEvent } from './events.ts'
import { controlPath, type EventsResponse, timeoutHeader, type HookFailure } from './protocol.ts'
import { startTimeLimit } from './time-limit.ts'

const statusByError: Record<HookFailure['error'], ContentfulStatusCode> = {
  bad_request: 400,
  forbidden: 403,
  not_found: 404,
  wrong_state: 409,
  hook_failed: 500,
  hook_timeout: 504,
}

/** Maximum timeout that the platform can request, in milliseconds. */
const maxTimeoutMs = 900_000

/** Creates the error response to a request from the platform. */
export function toErrorResponse({ error, message }: HookError): Response {
  const body: HookFailure = { error, message }
  return Response.json(body, { status: statusByError[error] })
}

/** Creates the control API of an instance. Its paths start with `controlPath`. */
export function controlOf(host: ModuleHost, health: HealthChecks): Hono {
  const control = new Hono().basePath(controlPath)
  const jobs = new Jobs(host)
  control.notFound(() => toErrorResponse(new HookError('not_found', 'This SDK does not support the request.')))
  control.onError((error) => toErrorResponse(toHookError(error)))

  const hookHandler = (run: (limitMs: number) => Promise<void>) => async (c: Context) => {
    await run(timeoutOf(c))
    return c.json(host.describe())
  }
  control.get('/describe', (c) => c.json(host.describe()))
  control.post(
    '/configure',
    hookHandler((limitMs) => host.configure(limitMs)),
  )
  control.post(
    '/start',
    hookHandler((limitMs) => host.start(limitMs)),
  )
  control.post(
    '/stop',
    hookHandler((graceMs) => host.stop(graceMs)),
  )
  control.post(
    '/dispose',
    hookHandler(() => host.dispose()),
  )

  control.get('/health/:name', (c) => healthResponse(health, c.req.param('name')))
  control.post('/jobs/:id', async (c) => {
    await host.whenStarted()
    return c.json(await jobs.run(c.req.param('id'), timeoutOf(c)))
  })
  control.post('/events', async (c) => {
    const events = eventsOf(await c.req.text(), host.context.orgId)
    await host.whenStarted()
    return c.json(await deliver(host, events, timeoutOf(c)))
  })
  return control
}

/** Runs one health check. The status is 200, 503 if the result is Unhealthy, or 404 if there is no such check. */
export async function healthResponse(health: HealthChecks, name: string): Promise<Response> {
  const result = await health.result(name)
  if (!result) return toErrorResponse(new HookError('not_found', `There is no health check ${name}.`))
  return Response.json(result, { status: result.status === 'Unhealthy' ? 503 : 200 })
}

function timeoutOf(c: Context): number {
  const requestedMs = Number(c.req.header(timeoutHeader))
  return requestedMs > 0 ? Math.min(requestedMs, maxTimeoutMs) : defaultHookMs
}

// Returns at the time limit, even if handlers are still running.
async function deliver(host: ModuleHost, events: readonly ModuleEvent[], limitMs: number): Promise<EventsResponse> {
  using timeLimit = startTimeLimit('The delivery of events', limitMs)
  return await host.bus.deliver(events, AbortSignal.any([timeLimit.signal, host.stopSignal]))
}
