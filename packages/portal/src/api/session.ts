// The tokens of the browser session are in cookies that scripts cannot read. A refresh token works only once, so only
// one tab at a time renews the session.

import type { UserNames } from '@platform/contract/user-name'
import { fetchTracked, readToEnd } from './connection.ts'
import { newKey, withIdempotencyKey } from './idempotency-key.ts'

const sessionPath = '/api/v1/auth/session'

/** Called when the session has ended or belongs to another user. Returns whether the same user is signed in again. */
type Recover = () => Promise<boolean>
let recover: Recover = () => Promise.resolve(false)
let recovery: Promise<boolean> | undefined

export const onSessionEnd = (handler: Recover): void => void (recover = handler)

/** Waits for a new sign-in, and returns whether the same user is signed in again. All callers share one attempt. */
export function awaitSignIn(): Promise<boolean> {
  recovery ??= recover().finally(() => (recovery = undefined))
  return recovery
}

/** Reads the user of the current session without renewing the session. Returns undefined if the request fails. */
export async function readUser(): Promise<(UserNames & { id: string }) | undefined> {
  const response = await readToEnd(fetch('/api/v1/auth/me')).catch(() => undefined)
  return response?.ok ? response.json() : undefined
}

/** Like `fetch`, but renews an expired session and adds idempotency keys to POST requests. */
export async function fetchInSession(request: Request): Promise<Response> {
  // The page of a module may set its own key.
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
  // If another user has signed in, the requests of this page must not run as that user.
  if (!pathname.startsWith('/api/v1/auth/')) await recovery
  const retry = request.clone()
  const response = await fetchTracked(request)
  if (response.status !== 401 || isSessionPath(pathname)) return response
  const renewal = await renewOnce()
  if (renewal.status === 401) {
    if (!(await awaitSignIn())) return response
    void response.body?.cancel()
    return fetch(retry)
  }
  void response.body?.cancel()
  return renewal.ok ? fetch(retry) : renewal.clone()
}

// A 401 response from these paths concerns the request, not the session.
const isSessionPath = (path: string): boolean =>
  path.startsWith(sessionPath) || path.startsWith('/api/v1/setup/') || path.startsWith('/api/v1/users/me/password')

let renewal: Promise<Response> | undefined

// Renews the session once for all concurrent callers. They share the response: a success, a 401 if the session has
// ended, or another error, which each caller returns as the response to its own request.
function renewOnce(): Promise<Response> {
  renewal ??= withTabLock(renew).finally(() => (renewal = undefined))
  return renewal
}

/**
 * Runs changes of the session in one tab at a time, because a late response would overwrite newer cookies. Without TLS
 * there are no locks, but then there is no session either.
 */
export const withTabLock = async <Result>(work: () => Promise<Result>): Promise<Result> =>
  'locks' in navigator ? navigator.locks.request('session', work) : work()

async function renew(): Promise<Response> {
  // Another tab may have renewed the session while this one waited for the lock.
  const probe = await readToEnd(fetch('/api/v1/auth/me'))
  return probe.ok ? probe : refresh()
}

const keyName = 'session renewal'

// If the response is lost or this tab is closed, the next renewal sends the same key and receives the same response.
async function refresh(): Promise<Response> {
  const key = localStorage.getItem(keyName) ?? newKey()
  localStorage.setItem(keyName, key)
  const request = fetch(`${sessionPath}/refresh`, { method: 'POST', headers: { 'idempotency-key': key } })
  const response = await readToEnd(request)
  if (response.ok || response.status === 401) localStorage.removeItem(keyName)
  return response
}
