import { transportWith } from '@platform/oci/plain-transport'
import { agentFor, ProxySettingError } from '@platform/relay/proxy'
import type { TransportResponse } from '@platform/oci/transport'
import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, messageOf } from '../exit.ts'
import { isPermanent, unreachableMessage } from './unreachable.ts'
import { say } from '../print/write.ts'
import { version } from '../version.ts'

const responseTimeoutSeconds = 60
const initialPauseMs = 250
const maxPauseMs = 5000
// Longer values of `Retry-After` are reduced to this value.
const maxRetryAfterMs = 60_000
const minTimeoutWithRetryAfterMs = 300_000
// Longer pauses are reported on standard error.
const reportedPauseMs = 3000

/**
 * How long to retry a request: for `retrySeconds`, or for `knownServerSeconds` once the server has responded. After a
 * response with `Retry-After`, the limit is at least five minutes. With 0 seconds there is no retry.
 */
export interface RetryPolicy {
  retrySeconds: number
  knownServerSeconds?: number
  responseTimeoutSeconds?: number
}

/**
 * Sends a request until it receives a definite response. This is safe for every request: GET, PATCH, PUT and DELETE are
 * idempotent, and a POST has an `Idempotency-Key`. When the time is up, or a failure is permanent, returns the response
 * to the last attempt or, without one, throws `CliError`.
 */
export async function withRetry(request: Request, policy: RetryPolicy): Promise<Response> {
  const startedAtMs = performance.now()
  let mayHaveSucceeded = false
  for (let count = 0; ; count++) {
    const { response, failure } = await sendOnce(request.clone(), policy)
    if (response) policy.retrySeconds = policy.knownServerSeconds ?? policy.retrySeconds
    // An earlier attempt, whose response was lost or an error, may have deleted the resource.
    if (response && request.method === 'DELETE' && mayHaveSucceeded && (await isGone(response)))
      return new Response(null, { status: 204 })
    if (response && !(await isUndecided(response))) return response
    mayHaveSucceeded ||= response === undefined || response.status >= 500
    const retryAfterMs = Math.min(maxRetryAfterMs, 1000 * (Number(response?.headers.get('retry-after')) || 0))
    const pauseMs = retryAfterMs + withJitter(Math.min(maxPauseMs, initialPauseMs * 2 ** count))
    const minTimeoutMs = retryAfterMs > 0 && policy.retrySeconds > 0 ? minTimeoutWithRetryAfterMs : 0
    const timeoutMs = Math.max(minTimeoutMs, 1000 * policy.retrySeconds)
    const isOver = performance.now() - startedAtMs + pauseMs > timeoutMs || isPermanent(failure)
    if (isOver) return response ?? throwUnreachable(request, failure)
    if (pauseMs > reportedPauseMs) say(noticeOf(response, failure, pauseMs))
    await sleep(pauseMs)
  }
}

const withJitter = (pauseMs: number): number => pauseMs * (0.5 + Math.random() / 2)

const transport = transportWith(agentFor)
const userAgent = `plat/${version()}`

// Reads the body as well, so that a truncated response counts as no response.
async function sendOnce(request: Request, policy: RetryPolicy): Promise<{ response?: Response; failure?: unknown }> {
  try {
    const content = Buffer.from(await request.arrayBuffer())
    const lengthHeader = { 'content-length': String(content.length) }
    const { status, headers, body } = await transport(request.url, {
      method: request.method,
      headers: {
        ...Object.fromEntries(request.headers),
        'user-agent': userAgent,
        ...(content.length > 0 && lengthHeader),
      },
      ...(content.length > 0 && { body: content }),
      timeoutMs: 1000 * (policy.responseTimeoutSeconds ?? responseTimeoutSeconds),
      maxBytes: Infinity,
    })
    return {
      response: new Response(body.length === 0 ? null : new Uint8Array(body), { status, headers: pairsOf(headers) }),
    }
  } catch (error) {
    if (error instanceof ProxySettingError) throw new CliError('usage', error.message)
    return { failure: error }
  }
}

const pairsOf = (headers: TransportResponse['headers']): [string, string][] =>
  Object.entries(headers).flatMap(([name, values = []]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  )

async function isUndecided(response: Response): Promise<boolean> {
  const { status } = response
  return status === 408 || status === 429 || status >= 500 || isConflict(response, 'conflict')
}

const isGone = async (response: Response): Promise<boolean> =>
  response.status === 404 || isConflict(response, 'module_not_installed')

const isConflict = async (response: Response, code: string): Promise<boolean> =>
  response.status === 409 && (await response.clone().text()).includes(`"error":"${code}"`)

function noticeOf(response: Response | undefined, failure: unknown, pauseMs: number): string {
  const statusText =
    response?.status === 429 ? 'Rate limited by the platform' : `The platform returned ${response?.status}`
  const problem = response === undefined ? messageOf(failure) : statusText
  return `${problem}; retrying in ${Math.ceil(pauseMs / 1000)} s.`
}

function throwUnreachable({ url }: Request, failure: unknown): never {
  throw new CliError('unreachable', unreachableMessage(new URL(url), failure), failure)
}
