import { type Context, Hono } from 'hono'
import { type ContentfulStatusCode } from 'hono/utils/http-status'
import { eventsOf } from './event-request.ts'
import { type HealthChecks } from './health.ts'
import { HookError, toHookError } from './hook-error.ts'
import { defaultHookMs, type ModuleHost } from './host.ts'
import { Jobs } from './jobs.ts'
import { type ModuleEvent } from './events.ts'
import { controlPath, type EventsResponse, graceHeader, type HookFailure } from './protocol.ts'
import { timeLimit } from './time-limit.ts'

const statuses: Record<HookFailure['error'], ContentfulStatusCode> = {
  bad_request: 400,
  forbidden: 403,
  not_found: 404,
  wrong_state: 409,
  hook_failed: 500,
  hook_timeout: 504,
}

/** Maximum timeout that the platform can request, in milliseconds. */
const maxTimeoutMs = 900_000

/** The error response to a request from the platform. */
export function controlError({ error, message }: HookError): Response {
  const body: HookFailure = { error, message }
  return Response.json(body, { status: statuses[error] })
}

/** The control API of an instance; its paths start with `controlPath`. */
export function controlOf(host: ModuleHost, health: HealthChecks): Hono {
  const control = new Hono().basePath(controlPath)
  const jobs = new Jobs(host)
  control.notFound(() => controlError(new HookError('not_found', 'This SDK does not support the request.')))
  control.onError((error) => controlError(toHookError(error)))

  const hook = (run: (limitMs: number) => Promise<void>) => async (c: Context) => {
    await run(timeoutOf(c))
    return c.json(host.describe())
  }
  control.get('/describe', (c) => c.json(host.describe()))
  control.post(
    '/configure',
    hook((limitMs) => host.configure(limitMs)),
  )
  control.post(
    '/start',
    hook((limitMs) => host.start(limitMs)),
  )
  control.post(
    '/stop',
    hook((graceMs) => host.stop(graceMs)),
  )
  control.post(
    '/dispose',
    hook(() => host.dispose()),
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

/** The response of one health check: 200, 503 if Unhealthy, or 404 if there is no such check. */
export async function healthResponse(health: HealthChecks, name: string): Promise<Response> {
  const result = await health.result(name)
  if (!result) return controlError(new HookError('not_found', `There is no health check ${name}.`))
  return Response.json(result, { status: result.status === 'Unhealthy' ? 503 : 200 })
}

function timeoutOf(c: Context): number {
  const requestedMs = Number(c.req.header(graceHeader))
  return requestedMs > 0 ? Math.min(requestedMs, maxTimeoutMs) : defaultHookMs
}

// Returns at the time limit even if handlers are still running.
async function deliver(host: ModuleHost, events: readonly ModuleEvent[], limitMs: number): Promise<EventsResponse> {
  using limit = timeLimit('The delivery of events', limitMs)
  return await host.bus.deliver(events, AbortSignal.any([limit.signal, host.stopping]))
}
