import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { unwrap, ApiRejection } from '../api/unwrap.ts'
import type { RetryPolicy } from '../api/retry.ts'
import { anonymous, type Credentials, type Schemas } from '../api/client.ts'
import { exitCodes, CliError } from '../exit.ts'
import { withLock } from './lock.ts'
import { readSession, removeSession, type Session, writeSession } from './store.ts'

export const defaultServer = 'http://127.0.0.1:8080'
// A token is renewed before it expires, because a request may take some time.
const marginMs = 30_000
const pauseMs = 1000

/** The platform's address without a trailing slash. Throws `CliError` if it is invalid. */
export function serverOf(text: string): string {
  if (!URL.canParse(text) || !/^https?:\/\//i.test(text)) {
    throw new CliError('usage', 'The server must be an http or https address, such as https://platform.example.com')
  }
  const { origin, pathname } = new URL(text)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}

/** Credentials from the environment, or else from `plat login`. Throws `CliError` if there are none. */
export function credentials(environment = process.env): Credentials {
  const { PLAT_SERVER: server, PLAT_TOKEN: token } = environment
  if (token) return { server: serverOf(server || defaultServer), bearer: async () => token }
  const session = readSession()
  if (session === undefined) throw notSignedIn(`Not signed in.`)
  if (server && serverOf(server) !== session.server) {
    throw notSignedIn(`Signed in to ${session.server} as ${session.username}, but PLAT_SERVER is ${server}.`)
  }
  return sessionCredentials(session)
}

const notSignedIn = (problem: string): CliError =>
  new CliError('notSignedIn', `${problem} Sign in with: plat login --server URL, or set PLAT_TOKEN.`)

function sessionCredentials(session: Session): Credentials {
  let current = session
  let renewal: Promise<Session> | undefined
  const bearer = async (policy: RetryPolicy, refused?: string): Promise<string> => {
    const isDue = refused === current.accessToken || current.expiresAtMs - marginMs < Date.now()
    if (isDue) {
      renewal ??= renew(current, policy).finally(() => (renewal = undefined))
      current = await renewal
    }
    return current.accessToken
  }
  return { server: session.server, bearer }
}

// An attempt without a response may have succeeded. Each retry reads the stored session first.
async function renew(expired: Session, { seconds }: RetryPolicy): Promise<Session> {
  const deadlineMs = performance.now() + 1000 * seconds
  for (;;) {
    try {
      return await withLock(() => renewOnce(expired))
    } catch (error) {
      const isUnreachable = error instanceof CliError && error.exitCode === exitCodes.unreachable
      if (!isUnreachable || performance.now() > deadlineMs) throw error
      await sleep(pauseMs)
    }
  }
}

// Processes of one user must not renew at the same time, because using a refresh token twice ends the session.
async function renewOnce(expired: Session): Promise<Session> {
  const session = readSession()
  // Another process may have signed in as another user. The command must not continue as that user.
  const isSame = session?.server === expired.server && session.username === expired.username
  if (session === undefined || !isSame) throw notSignedIn('The session has ended.')
  if (session.refreshToken !== expired.refreshToken) return session
  const { renewalKey = randomUUID(), ...rest } = session
  // Stored first: if the response is lost, the next renewal sends the same key and receives the same response.
  writeSession({ ...rest, renewalKey })
  const next = { ...rest, ...(await refresh(session, renewalKey)) }
  writeSession(next)
  return next
}

async function refresh({ server, refreshToken }: Session, renewalKey: string) {
  const client = anonymous(server, { seconds: 0, responseTimeoutSeconds: 15 })
  try {
    const params = { header: { 'idempotency-key': renewalKey } }
    return tokensOf(await unwrap(client.POST('/api/v1/auth/refresh', { params, body: { refreshToken } })))
  } catch (error) {
    if (!(error instanceof ApiRejection) || error.code !== 'invalid_refresh_token') throw error
    removeSession()
    throw notSignedIn('The session has ended.')
  }
}

export const tokensOf = ({ accessToken, refreshToken, expiresIn }: Schemas['TokenSet']) => ({
  accessToken,
  refreshToken,
  expiresAtMs: Date.now() + 1000 * expiresIn,
})
