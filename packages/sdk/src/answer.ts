import { controlOf, controlError } from './control.ts'
import { HealthChecks } from './health.ts'
import { HookError } from './hook-error.ts'
import { type ModuleHost } from './host.ts'
import { controlPath, publishedHeader, tokenHeader, userHeader } from './protocol.ts'
import { tokenCheck } from './token-check.ts'
import { handleRequest, setDefaults } from './requests.ts'

/** Handles a request, regardless of its transport. */
export type ModuleResponse = (request: Request) => Promise<Response>

/** Returns the request handler of an instance. All requests except `GET /health` require the deployment's token. */
export function answerOf(host: ModuleHost, token: string): ModuleResponse {
  const health = new HealthChecks(host)
  const control = controlOf(host, health)
  const isToken = tokenCheck(token)
  setDefaults(host.app, host.context.getLogger('routes'))

  async function handle(request: Request, path: string): Promise<Response> {
    if (!path.startsWith(`${controlPath}/`)) return handleRequest(host, health, request)
    // Rejects control requests of users, even if a gateway forwards their path.
    return request.headers.has(userHeader) ? forbidden() : control.fetch(request)
  }

  return async (request) => {
    const path = new URL(request.url).pathname
    if (request.method === 'GET' && path === '/health') return answerHealth(host, health)
    if (!isToken(request.headers.get(tokenHeader))) return forbidden()
    const response = await handle(request, path)
    // After a disconnect, published events remain queued for the next response.
    return withPublished(response, request.signal.aborted ? undefined : host.bus.outbox.take())
  }
}

const forbidden = (): Response => controlError(new HookError('forbidden', 'Only the platform may send this request.'))

async function answerHealth(host: ModuleHost, health: HealthChecks): Promise<Response> {
  // If the module cannot start, the response contains its state.
  await host.whenStarted().catch(() => {})
  const aggregate = await health.aggregate()
  return Response.json(aggregate, { status: aggregate.status === 'Unhealthy' ? 503 : 200 })
}

function withPublished(response: Response, published: string | undefined): Response {
  const headers = new Headers(response.headers)
  headers.delete(publishedHeader)
  if (published !== undefined) headers.set(publishedHeader, published)
  return new Response(response.body, { status: response.status, headers })
}
