import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BlockList } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { PlatformError, platformError } from '@platform/core/error'
import { traceIdOf } from '@platform/core/lib/trace'
import type { Broker } from '../emulators/iot/broker.ts'
import type { Log } from '../log.ts'
import { type Admit, readBody, type RequestMemory } from './body.ts'
import { httpEvent, type HttpEvent, type ReadRequest } from './event.ts'
import { toPublicError, errorResponse } from './error-response.ts'
import { admissionOf, toHttpResponse, type HttpResponse } from './result.ts'
import type { Router } from './routes.ts'
import { senderOf } from './sender.ts'
import { parseTarget } from './target.ts'

export interface RequestMetrics {
  /** Sets the route of the request. Without this call, the request counts as one to an unknown path. */
  setRoute: (route: { functionName: string; routeKey: string }) => void
  /** Ends the measured time, which excludes the delay after 429. */
  endTiming: () => void
  done: (status: number) => void
}

/** Serves a request in place of the functions. Returns undefined for a request that the functions serve. */
export type Interceptor = (request: IncomingMessage, path: string) => Promise<HttpResponse | undefined>

export type Invoke = (functionName: string, event: HttpEvent, requestId: string) => Promise<unknown>

/** Slows down callers after 429, because thousands of rejections per second would delay all other callers. */
const rateLimitDelayMs = 1000

export interface ExchangeContext {
  route: Router
  invoke: Invoke
  /** Takes over the connection of a relay. Without this function, there is no control channel. */
  channel?: Broker['accept']
  /** Without trusted proxies, `X-Forwarded-*` headers are ignored. */
  trustedProxies?: BlockList | undefined
  log: Log
  metrics: { begin: () => RequestMetrics; scrape: Interceptor }
}

/** Never rejects: an error becomes an error response. */
export async function handleRequest(
  context: ExchangeContext,
  request: IncomingMessage,
  response: ServerResponse,
  memory: RequestMemory,
): Promise<HttpResponse> {
  const traceId = traceIdOf(request.headersDistinct['traceparent']?.[0])
  const requestId = crypto.randomUUID()
  const recorder = context.metrics.begin()
  const result = await respondOrFail(context, request, response, { traceId, requestId, recorder, memory })
  recorder.done(result.status)
  return result
}

interface Tracking {
  traceId: string
  requestId: string
  recorder: RequestMetrics
  memory: RequestMemory
}

async function respondOrFail(
  context: ExchangeContext,
  request: IncomingMessage,
  response: ServerResponse,
  tracking: Tracking,
): Promise<HttpResponse> {
  const { traceId, requestId } = tracking
  try {
    const result = await runFunction(context, request, response, tracking)
    result.headers.set('apigw-requestid', requestId)
    return result
  } catch (error) {
    if (!(error instanceof PlatformError) && !response.destroyed) {
      const { method, url } = request
      context.log('a request failed', { level: 'error', method, url, traceId, requestId, error })
    }
    return errorResponse(toPublicError(error), traceId)
  }
}

async function runFunction(
  { route, invoke, trustedProxies, metrics }: ExchangeContext,
  request: IncomingMessage,
  response: ServerResponse,
  { recorder, memory, ...ids }: Tracking,
): Promise<HttpResponse> {
  requireValidHead(request)
  const target = parseTarget(request.url ?? '')
  const scrapeResponse = await metrics.scrape(request, target.path)
  if (scrapeResponse !== undefined) return scrapeResponse
  const match = route(request.method ?? '', target.path)
  recorder.setRoute({ ...match, routeKey: match.routeKey.replace(/^ANY/, methodLabel(request.method)) })
  const sender = senderOf(request, trustedProxies)
  const invokeWith = (body: Pick<ReadRequest, 'bytes' | 'isBodyPending'>) =>
    invoke(match.functionName, httpEvent({ request, target, match, sender, ...ids, ...body }), ids.requestId)
  const admit: Admit = async () => admissionOf(await invokeWith({ bytes: Buffer.alloc(0), isBodyPending: true }))
  const body = await readBody(request, memory, admit)
  const result = toHttpResponse('bytes' in body ? await invokeWith(body) : body.rejection)
  recorder.endTiming()
  if (result.status === 429) {
    await delay(rateLimitDelayMs, undefined, { signal: disconnectSignal(response) }).catch(() => undefined)
  }
  return result
}

/**
 * Returns the methods of the API unchanged. All others share one label, so that callers cannot create metric series.
 */
const methodLabel = (method = ''): string =>
  /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/.test(method) ? method : 'ANY'

/** Two HTTP parsers could interpret a request with two `Host` headers, or without an HTTP version, differently. */
function requireValidHead({ headersDistinct, httpVersion }: IncomingMessage): void {
  const hosts = headersDistinct['host']?.length ?? 0
  if (httpVersion !== '1.1' && httpVersion !== '1.0') throw new PlatformError('validation_failed', 'Use HTTP/1.1.')
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) {
    throw new PlatformError('validation_failed', 'The request must name one host.')
  }
}

function disconnectSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  if (response.destroyed) controller.abort()
  response.once('close', () => controller.abort())
  return controller.signal
}

/** Until the platform is ready, only the liveness probe succeeds. */
export function startingResponse(request: IncomingMessage): HttpResponse {
  const isLivenessProbe = /^(GET|HEAD)$/.test(request.method ?? '') && /^\/health\/live(\?|$)/.test(request.url ?? '')
  if (!isLivenessProbe) {
    return errorResponse(
      platformError('starting', { retryAfterSeconds: 1 }),
      traceIdOf(request.headersDistinct['traceparent']?.[0]),
    )
  }
  const headers = new Map([['content-type', 'application/json']])
  return { status: 200, headers, body: Buffer.from(JSON.stringify({ status: 'ok' })) }
}
