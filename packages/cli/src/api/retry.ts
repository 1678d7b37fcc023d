import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, messageOf } from '../exit.ts'
import { say } from '../print/write.ts'

const answerWithinSeconds = 60
const firstPauseMs = 250
const longestPauseMs = 5000
/** As long as a rate limit may ask to wait. */
const longestToldMs = 60_000
const patienceWhenToldMs = 300_000
/** A pause that a person would wonder about. */
const noticedMs = 3000

/**
 * How long to try again where nobody answers: `seconds` while the address may be wrong, `onceKnownSeconds` when the
 * platform has answered before; and how long to wait for one answer. With 0 seconds there is one try, whatever it says.
 */
export interface RetryPolicy {
  seconds: number
  onceKnownSeconds?: number
  answerWithinSeconds?: number
}

/**
 * Sends a request until the platform decides, which is safe for all that it may send: GET, PATCH, PUT and DELETE say
 * what shall be, and a POST carries its Idempotency-Key. Throws `Failure` when nobody answers for too long.
 */
export async function withRetry(request: Request, patience: RetryPolicy): Promise<Response> {
  const startedAtMs = performance.now()
  let isMaybeDone = false
  for (let count = 0; ; count++) {
    const { response, reason } = await once(request.clone(), patience)
    if (response) patience.seconds = patience.onceKnownSeconds ?? patience.seconds
    // Gone by the try whose answer was lost.
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

/** Between half of it and all of it, so that many callers do not return in step. */
const jittered = (pauseMs: number): number => pauseMs * (0.5 + Math.random() / 2)

/** One try, with the whole body: an answer that is cut off is none. */
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
    response?.status === 429
      ? 'The platform limits the rate of requests'
      : (reason ?? `It answered ${response?.status}`)
  return `${what}; trying again in ${Math.ceil(pauseMs / 1000)} s.`
}

function unreachable({ url }: Request, reason: string | undefined): never {
  const { origin } = new URL(url)
  throw new CliError(
    'unreachable',
    `Nobody answers at ${origin} (${reason}). Is the address right, and does the platform run?`,
  )
}
