import { log, withTrace } from '@platform/core/log'
import { recordMetric, withMetrics } from '@platform/core/lib/metrics'
import type { GatewayEvent } from './event.ts'
import { promisedRetry } from './error-response.ts'
import type { HttpResponse } from './response.ts'
import { traceIdOf } from '@platform/core/lib/trace'

/** Headers of every answer; a handler may set its own `cache-control`. */
const common = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/**
 * Runs a request under its trace, gives the answer the headers that all carry, and logs one line (D33). `handle` adds to the
 * headers that it is given; those of its reply come before them.
 */
export function withRequestLog(
  { headers: { traceparent }, requestContext }: GatewayEvent,
  handle: (headers: Record<string, string>) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  const { method } = requestContext.http
  const traceId = traceIdOf(traceparent)
  const request = async () => {
    const startedAtMs = performance.now()
    const headers = { ...common, 'x-trace-id': traceId }
    const reply = await handle(headers)
    const durationMs = Math.round(performance.now() - startedAtMs)
    const { status } = reply
    log('info', 'request', { method, status, durationMs })
    measureAnswer(status, durationMs)
    return { ...reply, headers: { ...headers, ...promisedRetry(reply), ...reply.headers } }
  }
  return withTrace({ traceId }, () => withMetrics(request))
}

function measureAnswer(status: number, durationMs: number): void {
  recordMetric('Requests')
  recordMetric('RequestDuration', durationMs)
  recordMetric('Faults', status >= 500 ? 1 : 0)
  if (status === 429) recordMetric('Refusals')
}
