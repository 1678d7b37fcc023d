import { randomUUID } from 'node:crypto'
import createClient, { type Client } from 'openapi-fetch'
import { type RetryPolicy, withRetry } from './retry.ts'
import type { components, paths } from '@platform/contract/openapi-types'

export type Api = Client<paths, 'application/json'>
export type Schemas = components['schemas']

/** Creates a client that sends no token. */
export const anonymousClient = (server: string, policy: RetryPolicy): Api =>
  createClient<paths, 'application/json'>({
    baseUrl: server,
    redirect: 'manual',
    fetch: (request) => withRetry(withIdempotencyKey(request), policy),
  })

export interface Credentials {
  server: string
  /**
   * Returns the token. Renews the token of a session first if it expires soon or equals `refusedToken`, which the
   * platform rejected as expired.
   */
  bearer: (policy: RetryPolicy, refusedToken?: string) => Promise<string>
}

/**
 * Creates a client that sends the caller's token. If the platform rejects the token as expired, the client renews it
 * and repeats the request once.
 */
export const authorisedClient = ({ server, bearer }: Credentials, policy: RetryPolicy): Api =>
  createClient<paths, 'application/json'>({
    baseUrl: server,
    redirect: 'manual',
    fetch: async (request) => {
      const keyedRequest = withIdempotencyKey(request)
      const token = await bearer(policy)
      const response = await withRetry(withToken(keyedRequest, token), policy)
      const isExpired = response.status === 401 && (await response.clone().text()).includes('"error":"token_expired"')
      const renewedToken = isExpired ? await bearer(policy, token) : token
      return renewedToken === token ? response : withRetry(withToken(keyedRequest, renewedToken), policy)
    },
  })

// With an idempotency key, the platform executes a repeated POST only once.
function withIdempotencyKey(request: Request): Request {
  const isKeyless = request.method === 'POST' && !request.headers.has('idempotency-key')
  if (isKeyless) request.headers.set('idempotency-key', randomUUID())
  return request
}

function withToken(request: Request, token: string): Request {
  const copy = request.clone()
  copy.headers.set('authorization', `Bearer ${token}`)
  return copy
}
