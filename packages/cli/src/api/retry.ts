import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, messageOf } from '../exit.ts'
import { say } from '../print/write.ts'

const answerWithinSeconds = 60
const firstPauseMs = 250
const longestPauseMs = 5000
/** The longest Retry-After that is followed. */
const longestToldMs = 60_000
const patienceWhenToldMs = 300_000
/** Longer pauses are reported on standard error. */
const noticedMs = 3000

/**
 * How long to retry without a response: `seconds` for a new address, `onceKnownSeconds` after the first response. With
 * 0 seconds there is one attempt.
 */
export interface RetryPolicy {
  seconds: number
  onceKnownSeconds?: number
  answerWithinSeconds?: number
}

/**
 * Sends a request until it gets a definite response. Safe for every request: GET, PATCH, PUT and DELETE are idempotent,
 * and a POST has an Idempotency-Key. Throws `CliError` when the retries are used up.
 */
export async function withRetry(request: Request, patience: RetryPolicy): Promise<Response> {
  const startedAtMs = performance.now()
  let isMaybeDone = false
  for (let count = 0; ; count++) {
    const { response, reason } = await once(request.clone(), patience)
    if (response) patience.seconds = patience.onceKnownSeconds ?? patience.seconds
    // An earlier attempt deleted the resource, and its response was lost.
    if (response && request.method === 'DELETE' && isMaybeDone && (await isGone(response)))
      return new Response(null, { status: 204 })
    if (response && !(await isUndecided(response))) return response
    isMaybeDone ||= response === undefined || response.status >= 500
    const toldMs = Math.min(longestToldMs, 1000 * (Number(response?.headers.get('retry-after')) || 0))
    const pauseMs = toldMs + jittered(Math.min(longestPauseMs, firstPauseMs * 2 ** count))
    const patienceMs = toldMs > 0 && patience.seconds > 0 ? patienceWhenToldMs : 1000 * patience.seconds
    if (performance.now() - startedAtMs + pauseMs > patienceMs) return response ?? unreachable(request, reason)
    if (pauseMs > noticedMs) say(noticeOf(response, reason, pauseMs))
    await sleep(pauseMs)
  }
}

/** Jitter spreads the retries of many callers. */
const jittered = (pauseMs: number): number => pauseMs * (0.5 + Math.random() / 2)

/** One attempt, body included: a truncated response counts as none. */
async function once(request: Request, patience: RetryPolicy): Promise<{ response?: Response; reason?: string }> {
  try {
    const limit = AbortSignal.timeout(1000 * (patience.answerWithinSeconds ?? answerWithinSeconds))
    const answer = await fetch(request, { signal: limit })
    const { status, headers } = answer
    const body = await answer.arrayBuffer()
    return { response: new Response(body.byteLength === 0 ? null : body, { status, headers }) }
  } catch (error) {
    return { reason: messageOf(error) }
  }
}

async function isUndecided(response: Response): Promise<boolean> {
  const { status } = response
  return status === 408 || status === 429 || status >= 500 || isConflict(response, 'conflict')
}

const isGone = async (response: Response): Promise<boolean> =>
  response.status === 404 || isConflict(response, 'module_not_installed')

const isConflict = async (response: Response, code: string): Promise<boolean> =>
  response.status === 409 && (await response.clone().text()).includes(`"error":"${code}"`)

function noticeOf(response: Response | undefined, reason: string | undefined, pauseMs: number): string {
  const what =
    response?.status === 429 ? 'Rate limited by the platform' : (reason ?? `The platform returned ${response?.status}`)
  return `${what}; retrying in ${Math.ceil(pauseMs / 1000)} s.`
}

function unreachable({ url }: Request, reason: string | undefined): never {
  const { origin } = new URL(url)
  throw new CliError(
    'unreachable',
    `No response from ${origin} (${reason}). Check the address and that the platform is running.`,
  )
}
