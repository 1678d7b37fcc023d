import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { PlatformError, platformError } from '@platform/core/error'
import { traceIdOf } from '@platform/core/lib/trace'
import type { Log } from '../log.ts'
import { readBody } from './body.ts'
import { httpEvent, type HttpEvent } from './event.ts'
import { longPollOf, type LongPolls } from './long-polls.ts'
import { publicError, errorResponse } from './error-response.ts'
import { answerOf, type HttpAnswer } from './result.ts'
import type { Router } from './routes.ts'
import { parseTarget } from './target.ts'

/** Metrics of one request, recorded by the gateway. */
export interface RequestWatch {
  /** Sets its route; without one it counts with the unknown paths. */
  routed: (route: { functionName: string; routeKey: string }) => void
  /** Ends the measured time: later delays are long polls or rate limits. */
  answered: () => void
  done: (status: number) => void
}

/** Returns the metrics to an authorised reader, else undefined: the path is then unknown. */
export type Scrape = (request: IncomingMessage, path: string) => Promise<HttpAnswer | undefined>

/** Runs a function with an event. */
export type Invoke = (functionName: string, event: HttpEvent, requestId: string) => Promise<unknown>

/** Delays a caller after 429: thousands of rejections per second would slow down all others. */
const refusalMs = 1000

export interface ExchangeContext {
  route: Router
  invoke: Invoke
  holding: LongPolls
  log: Log
  metrics: { begin: () => RequestWatch; scrape: Scrape }
}

/** Responds to a request, also after an error: HTTP → event → function → HTTP. */
export async function answerRequest(
  context: ExchangeContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<HttpAnswer> {
  const traceId = traceIdOf(request.headersDistinct['traceparent']?.[0])
  const requestId = crypto.randomUUID()
  const watch = context.metrics.begin()
  const answer = await answerOrRefuse(context, request, response, { traceId, requestId, watch })
  watch.done(answer.status)
  return answer
}

/** The ids of a request, and its metrics. */
interface Marks {
  traceId: string
  requestId: string
  watch: RequestWatch
}

async function answerOrRefuse(
  context: ExchangeContext,
  request: IncomingMessage,
  response: ServerResponse,
  marks: Marks,
): Promise<HttpAnswer> {
  const { traceId, requestId } = marks
  try {
    const answer = await runFunction(context, request, response, marks)
    answer.headers.set('apigw-requestid', requestId)
    return answer
  } catch (error) {
    if (!(error instanceof PlatformError) && !response.destroyed) {
      context.log('a request failed', { method: request.method, url: request.url, traceId, requestId, error })
    }
    return errorResponse(publicError(error), traceId)
  }
}

async function runFunction(
  { route, invoke, holding, metrics }: ExchangeContext,
  request: IncomingMessage,
  response: ServerResponse,
  { watch, ...ids }: Marks,
): Promise<HttpAnswer> {
  requireSoundHead(request)
  const target = parseTarget(request.url ?? '')
  const scraped = await metrics.scrape(request, target.path)
  if (scraped !== undefined) return scraped
  const match = route(request.method ?? '', target.path)
  watch.routed(match)
  const event = httpEvent({ request, target, match, bytes: await readBody(request), ...ids })
  const mark = holding.mark()
  const answer = answerOf(await invoke(match.functionName, event, ids.requestId))
  watch.answered()
  const hold = longPollOf(answer.headers)
  if (hold !== undefined) await holding.wait(hold.channel, mark, hold.timeoutMs, goneSignal(response))
  if (answer.status === 429) await delay(refusalMs, undefined, { signal: goneSignal(response) }).catch(() => undefined)
  return answer
}

/** Two parsers could interpret a request with two hosts or without a version differently. */
function requireSoundHead({ headersDistinct, httpVersion }: IncomingMessage): void {
  const hosts = headersDistinct['host']?.length ?? 0
  if (httpVersion !== '1.1' && httpVersion !== '1.0') throw new PlatformError('validation_failed', 'Use HTTP/1.1.')
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) {
    throw new PlatformError('validation_failed', 'The request must name one host.')
  }
}

function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (response.destroyed) gone.abort()
  response.once('close', () => gone.abort())
  return gone.signal
}

/** The response of a starting platform: alive, but not ready. */
export function answerWhileStarting(request: IncomingMessage): HttpAnswer {
  const isLivenessProbe = request.method === 'GET' && /^\/health\/live(\?|$)/.test(request.url ?? '')
  if (!isLivenessProbe) {
    return errorResponse(
      platformError('starting', { retryAfterSeconds: 1 }),
      traceIdOf(request.headersDistinct['traceparent']?.[0]),
    )
  }
  const headers = new Map([['content-type', 'application/json']])
  return { status: 200, headers, body: Buffer.from(JSON.stringify({ status: 'ok' })) }
}
