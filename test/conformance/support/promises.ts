import type { Answer } from './answer.ts'

/** What the specification promises of every answer, whatever was asked. */

const everywhere: Record<string, RegExp> = {
  'x-trace-id': /^(?!0{32})[0-9a-f]{32}$/,
  'x-content-type-options': /^nosniff$/,
  'referrer-policy': /^no-referrer$/,
  'cache-control': /./,
}

/** Headers of every response. Only public data may be cached by shared caches. */
export function everywhereViolations({ status, headers }: Answer): string[] {
  const wrong = Object.entries(everywhere)
    .filter(([name, pattern]) => !pattern.test(headers.get(name) ?? ''))
    .map(([name]) => `the header ${name} is ${headers.get(name)}`)
  const isKept = headers.get('cache-control') !== 'no-store'
  return isKept && status >= 400 ? [...wrong, 'a failure may be cached'] : wrong
}

/** Errors are JSON with a trace id, and with `Retry-After` or `WWW-Authenticate` where these help. */
export function errorViolations({ status, headers, body }: Answer): string[] {
  const isProbe = status === 503 && typeof body?.status === 'string'
  if (status < 400 || isProbe) return []
  return [
    ...(headers.get('content-type') === 'application/json' ? [] : ['the failure is not JSON']),
    ...(body?.traceId === headers.get('x-trace-id') ? [] : ['traceId is not the X-Trace-Id']),
    ...(status === 401 && !headers.has('www-authenticate') ? ['401 without WWW-Authenticate'] : []),
    ...((status === 429 || status === 503) && !headers.has('retry-after') ? [`${status} without Retry-After`] : []),
  ]
}
