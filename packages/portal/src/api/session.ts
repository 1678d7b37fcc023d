/**
 * The browser's session: its tokens stand in cookies that no script reads. When the access token has expired, one tab trades
 * the refresh token, and all calls of all tabs go on. A refresh token works once (D4): it is never tried twice at a time.
 */

import { withIdempotencyKey } from './idempotency-key.ts'

const sessionPath = '/api/v1/auth/session'
const listeners = new Set<() => void>()

/** Calls back when the session turns out to have ended. Returns what takes the listener away again. */
export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** `fetch` for the API: renews the session when it has to, and does a POST once however often it is sent (D28). */
export async function fetchInSession(request: Request): Promise<Response> {
  // A module's page may bring a key of its own.
  const isKeyless = request.method === 'POST' && !request.headers.has('idempotency-key')
  const repeat = isKeyless ? await withIdempotencyKey(request) : undefined
  if (repeat !== undefined) request.headers.set('idempotency-key', repeat.key)
  try {
    const response = await send(request)
    repeat?.settle(response)
    return response
  } catch (error) {
    repeat?.settle(undefined)
    throw error
  }
}

async function send(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  const again = request.clone()
  const response = await fetch(request)
  if (response.status !== 401 || isAboutSession(pathname)) return response
  const renewal = await renewed()
  if (renewal.status === 401) {
    for (const listener of listeners) listener()
    return response
  }
  void response.body?.cancel()
  return renewal.ok ? fetch(again) : renewal.clone()
}

/** Of these a 401 says something about what was sent, not about the session. */
const isAboutSession = (path: string): boolean =>
  path.startsWith(sessionPath) || path.startsWith('/api/v1/setup/') || path.startsWith('/api/v1/users/me/password')

let renewal: Promise<Response> | undefined

/**
 * What the platform says to going on: a success, 401 where the session has ended, or why not just now, which is the answer to
 * the calls that wait for it. All who ask while it is renewed hear the same.
 */
function renewed(): Promise<Response> {
  renewal ??= withTabLock(renew).finally(() => (renewal = undefined))
  return renewal
}

/**
 * One tab after the other, for whatever changes the session: the cookies of an answer that comes late would undo those of a later
 * one. Without TLS there are no locks, and no session that tabs could share.
 */
export const withTabLock = async <Result>(work: () => Promise<Result>): Promise<Result> =>
  'locks' in navigator ? navigator.locks.request('session', work) : work()

async function renew(): Promise<Response> {
  // Another tab may have renewed the session while this one waited for its turn.
  const probe = await readToEnd(fetch('/api/v1/auth/me'))
  return probe.ok ? probe : readToEnd(fetch(`${sessionPath}/refresh`, { method: 'POST' }))
}

/** An answer that nobody reads to its end holds its connection, of which a browser has six. */
async function readToEnd(call: Promise<Response>): Promise<Response> {
  const response = await call
  return new Response(await response.text(), response)
}
