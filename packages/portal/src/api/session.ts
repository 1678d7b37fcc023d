/**
 * The browser's session: its tokens stand in cookies that no script reads. When the access token has expired, one tab trades
 * the refresh token, and all calls of all tabs go on. A refresh token works once (D4): it is never tried twice at a time.
 */

const sessionPath = '/api/v1/auth/session'
const listeners = new Set<() => void>()

/** Calls back when the session turns out to have ended. Returns what takes the listener away again. */
export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** `fetch` for the API: renews the session when it has to, and does a POST once however often it is sent (D28). */
export async function fetchInSession(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  // A module's page may bring a key of its own.
  if (request.method === 'POST' && !request.headers.has('idempotency-key')) {
    request.headers.set('idempotency-key', crypto.randomUUID())
  }
  const again = request.clone()
  const response = await fetch(request)
  if (response.status !== 401 || isAboutSession(pathname)) return response
  if (await renewed()) {
    void response.body?.cancel()
    return fetch(again)
  }
  for (const listener of listeners) listener()
  return response
}

/** Of these a 401 says something about what was sent, not about the session. */
const isAboutSession = (path: string): boolean =>
  path.startsWith(sessionPath) || path.startsWith('/api/v1/setup/') || path.startsWith('/api/v1/users/me/password')

let renewal: Promise<boolean> | undefined

/** Whether the session goes on. All who ask while it is renewed hear the same. */
function renewed(): Promise<boolean> {
  renewal ??= navigator.locks.request('session', renew).finally(() => (renewal = undefined))
  return renewal
}

async function renew(): Promise<boolean> {
  // Another tab may have renewed the session while this one waited for its turn.
  const probe = await readToEnd(fetch('/api/v1/auth/me'))
  if (probe.ok) return true
  const response = await readToEnd(fetch(`${sessionPath}/refresh`, { method: 'POST' }))
  if (response.ok) return true
  if (response.status === 401) return false
  throw new Error('The session could not be renewed just now.')
}

/** An answer that nobody reads to its end holds its connection, of which a browser has six. */
async function readToEnd(call: Promise<Response>): Promise<Response> {
  const response = await call
  await response.text()
  return response
}
