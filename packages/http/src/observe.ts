import { log, traced } from '@platform/core/log'
import { measure, measured } from '@platform/core/metrics'
import type { Next } from 'hono'
import type { HttpContext } from './context.ts'
import { promiseRetry } from './failure.ts'
import { traceIdOf } from './trace.ts'

/** Headers of every answer; a handler may set its own `cache-control`. */
const common = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** Runs a request under its trace, gives the answer the headers that all carry, and logs one line (D33). */
export function observe(context: HttpContext, next: Next): Promise<void> {
  const { headers, requestContext } = context.env.event
  const { method } = requestContext.http
  const traceId = traceIdOf(headers['traceparent'])
  const request = async () => {
    const startedAtMs = performance.now()
    for (const [name, value] of Object.entries({ ...common, 'x-trace-id': traceId })) context.header(name, value)
    await next()
    promiseRetry(context)
    const durationMs = Math.round(performance.now() - startedAtMs)
    const { status } = context.res
    log('info', 'request', { method, status, durationMs })
    measureAnswer(status, durationMs)
  }
  return traced({ traceId }, () => measured(request))
}

function measureAnswer(status: number, durationMs: number): void {
  measure('Requests')
  measure('RequestDuration', durationMs)
  measure('Faults', status >= 500 ? 1 : 0)
  if (status === 429) measure('Refusals')
}
