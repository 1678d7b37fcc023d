import { randomUUID } from 'node:crypto'
import createClient, { type Client } from 'openapi-fetch'
import { withRetry, type RetryPolicy } from './retry.ts'
import type { components, paths } from '@platform/contract/openapi-types'

/** The platform's API, typed by its OpenAPI document. */
export type Api = Client<paths>
/** Schemas of the API, by name. */
export type Schemas = components['schemas']

/** Calls without a token. */
export const anonymous = (server: string, policy: RetryPolicy): Api =>
  createClient<paths>({
    baseUrl: server,
    redirect: 'manual',
    fetch: (request) => withRetry(repeatable(request), policy),
  })

export interface Credentials {
  server: string
  /** Returns a valid token. Pass a token that the platform rejected as expired to renew it. */
  bearer: (policy: RetryPolicy, refused?: string) => Promise<string>
}

/** Calls with the caller's token and renews it when it expires. */
export const authorised = ({ server, bearer }: Credentials, policy: RetryPolicy): Api =>
  createClient<paths>({
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

/** The platform executes a POST once per idempotency key. */
function repeatable(request: Request): Request {
  if (request.method === 'POST') request.headers.set('idempotency-key', randomUUID())
  return request
}

function withToken(request: Request, token: string): Request {
  const copy = request.clone()
  copy.headers.set('authorization', `Bearer ${token}`)
  return copy
}
