import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiRejection, unwrap } from '../api/unwrap.ts'
import type { RetryPolicy } from '../api/retry.ts'
import { anonymousClient, type Credentials, type Schemas } from '../api/client.ts'
import { defaultContext, environmentServer, environmentToken, loginCommand, requestedContextName } from '../context.ts'
import { CliError, exitCodes } from '../exit.ts'
import { withLock } from './lock.ts'
import { type Context, contextNames, readContext, selectedContextName, type Session, writeContext } from './store.ts'

export const defaultServer = 'http://127.0.0.1:8080'
// A token is renewed this long before it expires, because a request may take some time.
const renewalMarginMs = 30_000
const pauseMs = 1000

/** Returns the platform's address without query, fragment and trailing slash. Throws `CliError` if it is invalid. */
export function serverOf(text: string): string {
  if (!URL.canParse(text) || !/^https?:\/\//i.test(text)) {
    throw new CliError('usage', 'The server must be an http or https address, such as https://platform.example.com')
  }
  const { origin, pathname } = new URL(text)
  return `${origin}${pathname}`.replace(/\/+$/, '')
}

/**
 * Returns the server of PLAT_TOKEN, or else of the context. Throws `CliError` if the context does not exist or
 * PLAT_SERVER contradicts it.
 */
export function selectedServer(): string {
  if (environmentToken() !== undefined) return serverOfToken()
  const name = selectedContextName()
  const { server } = existingContext(name)
  const requestedServer = environmentServer()
  if (requestedServer === undefined || serverOf(requestedServer) === server) return server
  throw new CliError(
    'notSignedIn',
    `The context ${name} belongs to ${server}, but PLAT_SERVER is ${requestedServer}. Unset it, or run: plat login`,
  )
}

// The token may belong to another server than the context, so the server of the context is not used.
function serverOfToken(): string {
  const server = environmentServer()
  const context = requestedContextName()
  if (server === undefined && context !== undefined) {
    throw new CliError(
      'usage',
      `PLAT_TOKEN overrides the context ${context} of PLAT_CONTEXT. Set PLAT_SERVER to the server of the token, or unset one of them.`,
    )
  }
  return serverOf(server ?? defaultServer)
}

/** Returns credentials from the environment, or else from the context. Throws `CliError` if there are none. */
export function credentials(): Credentials {
  const token = environmentToken()
  const server = selectedServer()
  if (token !== undefined) return { server, bearer: async () => token }
  const name = selectedContextName()
  const { session } = existingContext(name)
  if (session === undefined) throw notSignedInError(`Not signed in to ${server}.`)
  return contextCredentials(name, session)
}

/** Reads a context. Throws `CliError` if the context does not exist or its file is damaged. */
export function existingContext(name: string): Context {
  const context = readContext(name)
  if (context !== undefined) return context
  if (name === defaultContext && contextNames().length === 0)
    throw new CliError('notSignedIn', 'Not signed in. Run: plat login --server URL, or set PLAT_TOKEN.')
  throw new CliError('notSignedIn', `There is no context ${name}. See: plat context list`)
}

const notSignedInError = (problem: string): CliError => new CliError('notSignedIn', `${problem} Run: ${loginCommand()}`)

export function contextCredentials(name: string, session: Session): Credentials {
  let current = session
  let renewal: Promise<Session> | undefined
  const bearer = async (policy: RetryPolicy, refusedToken?: string): Promise<string> => {
    const isDue = refusedToken === current.accessToken || current.expiresAtMs - renewalMarginMs < Date.now()
    if (isDue) {
      renewal ??= renew(name, current, policy).finally(() => (renewal = undefined))
      current = await renewal
    }
    return current.accessToken
  }
  return { server: session.server, bearer }
}

// An attempt without a response may have succeeded. Each retry reads the stored session first.
async function renew(name: string, expiredSession: Session, { retrySeconds }: RetryPolicy): Promise<Session> {
  const deadlineMs = performance.now() + 1000 * retrySeconds
  for (;;) {
    try {
      return await withLock(name, () => renewOnce(name, expiredSession))
    } catch (error) {
      const isUnreachable = error instanceof CliError && error.exitCode === exitCodes.unreachable
      if (!isUnreachable || performance.now() > deadlineMs) throw error
      await sleep(pauseMs)
    }
  }
}

// Processes of one user must not renew at the same time, because using a refresh token twice ends the session.
async function renewOnce(name: string, expiredSession: Session): Promise<Session> {
  const session = readContext(name)?.session
  // Another process may have signed in as another user. The command must not continue as that user.
  const isSame = session?.server === expiredSession.server && session.username === expiredSession.username
  if (session === undefined || !isSame) throw notSignedInError('Your session has ended.')
  if (session.refreshToken !== expiredSession.refreshToken) return session
  const { renewalKey = randomUUID(), ...rest } = session
  // The key is stored first: if the response is lost, the next renewal sends it again and receives the same response.
  const store = (next: Session) => writeContext(name, { server: next.server, session: next })
  store({ ...rest, renewalKey })
  const next = { ...rest, ...(await refresh(name, session, renewalKey)) }
  store(next)
  return next
}

async function refresh(name: string, { server, username, refreshToken }: Session, renewalKey: string) {
  const client = anonymousClient(server, { retrySeconds: 0, responseTimeoutSeconds: 15 })
  try {
    const params = { header: { 'idempotency-key': renewalKey } }
    return tokensOf(await unwrap(client.POST('/api/v1/auth/refresh', { params, body: { refreshToken } })))
  } catch (error) {
    if (!(error instanceof ApiRejection) || error.code !== 'invalid_refresh_token') throw error
    writeContext(name, { server, username })
    throw notSignedInError('Your session has ended.')
  }
}

export const tokensOf = ({ accessToken, refreshToken, expiresIn }: Schemas['TokenSet']) => ({
  accessToken,
  refreshToken,
  expiresAtMs: Date.now() + 1000 * expiresIn,
})
