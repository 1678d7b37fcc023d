import { randomUUID } from 'node:crypto'
import createClient, { type Client } from 'openapi-fetch'
import { withRetry, type RetryPolicy } from './retry.ts'
import type { components, paths } from '@platform/contract/openapi-types'

export type Api = Client<paths, 'application/json'>
export type Schemas = components['schemas']

/** Creates a client that sends no token. */
export const anonymous = (server: string, policy: RetryPolicy): Api =>
  createClient<paths, 'application/json'>({
    baseUrl: server,
    redirect: 'manual',
    fetch: (request) => withRetry(repeatable(request), policy),
  })

export interface Credentials {
  server: string
  /** Returns a valid token. If `refused` is a token that the platform rejected as expired, returns a new one. */
  bearer: (policy: RetryPolicy, refused?: string) => Promise<string>
}

/** Creates a client that sends the caller's token and renews it when it expires. */
export const authorised = ({ server, bearer }: Credentials, policy: RetryPolicy): Api =>
  createClient<paths, 'application/json'>({
    baseUrl: server,
    redirect: 'manual',
    fetch: async (request) => {
      const keyed = repeatable(request)
      const token = await bearer(policy)
      const response = await withRetry(withToken(keyed, token), policy)
      const isExpired = response.status === 401 && (await response.clone().text()).includes('"error":"token_expired"')
      const fresh = isExpired ? await bearer(policy, token) : token
      return fresh === token ? response : withRetry(withToken(keyed, fresh), policy)
    },
  })

// With an idempotency key the platform executes a repeated POST only once.
function repeatable(request: Request): Request {
  const isKeyless = request.method === 'POST' && !request.headers.has('idempotency-key')
  if (isKeyless) request.headers.set('idempotency-key', randomUUID())
  return request
}

function withToken(request: Request, token: string): Request {
  const copy = request.clone()
  copy.headers.set('authorization', `Bearer ${token}`)
  return copy
}
