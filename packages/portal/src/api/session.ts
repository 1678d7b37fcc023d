/**
 * The browser session. Its tokens are in cookies that scripts cannot read. When the access token expires, one tab
 * renews it for all calls of all tabs, because a refresh token works once.
 */

import { withIdempotencyKey } from './idempotency-key.ts'

const sessionPath = '/api/v1/auth/session'
const listeners = new Set<() => void>()

/** Calls back when the session has ended. Returns a function that removes the listener. */
export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** `fetch` for the API: renews the session and adds idempotency keys to POSTs. */
export async function fetchInSession(request: Request): Promise<Response> {
  // A module's page may set its own key.
  const isKeyless = request.method === 'POST' && !request.headers.has('idempotency-key')
  const idempotentCall = isKeyless ? await withIdempotencyKey(request) : undefined
  if (idempotentCall !== undefined) request.headers.set('idempotency-key', idempotentCall.key)
  try {
    const response = await send(request)
    idempotentCall?.settle(response)
    return response
  } catch (error) {
    idempotentCall?.settle(undefined)
    throw error
  }
}

async function send(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  const retry = request.clone()
  const response = await fetch(request)
  if (response.status !== 401 || isSessionPath(pathname)) return response
  const renewal = await renewOnce()
  if (renewal.status === 401) {
    for (const listener of listeners) listener()
    return response
  }
  void response.body?.cancel()
  return renewal.ok ? fetch(retry) : renewal.clone()
}

/** A 401 of these paths is about the request, not the session. */
const isSessionPath = (path: string): boolean =>
  path.startsWith(sessionPath) || path.startsWith('/api/v1/setup/') || path.startsWith('/api/v1/users/me/password')

let renewal: Promise<Response> | undefined

/**
 * The response to the renewal: a success, 401 if the session has ended, or the error for all waiting calls. Concurrent
 * callers share it.
 */
function renewOnce(): Promise<Response> {
  renewal ??= withTabLock(renew).finally(() => (renewal = undefined))
  return renewal
}

/**
 * Serialises session changes across tabs, because a late response would overwrite newer cookies. Without TLS there are
 * no locks, but also no session.
 */
export const withTabLock = async <Result>(work: () => Promise<Result>): Promise<Result> =>
  'locks' in navigator ? navigator.locks.request('session', work) : work()

async function renew(): Promise<Response> {
  // Another tab may have renewed the session in the meantime.
  const probe = await readToEnd(fetch('/api/v1/auth/me'))
  return probe.ok ? probe : readToEnd(fetch(`${sessionPath}/refresh`, { method: 'POST' }))
}

/** An unread response blocks one of the browser's six connections. */
async function readToEnd(call: Promise<Response>): Promise<Response> {
  const response = await call
  return new Response(await response.text(), response)
}
