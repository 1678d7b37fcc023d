import { randomUUID } from 'node:crypto'
import createClient, { type Client } from 'openapi-fetch'
import { withRetry, type RetryPolicy } from './retry.ts'
import type { components, paths } from '@platform/contract/openapi-types'

/** The platform's API, typed by the OpenAPI document that it publishes. */
export type Api = Client<paths>
/** The shapes that the API speaks of, by their names. */
export type Schemas = components['schemas']

/** Calls without a token. */
export const anonymous = (server: string, patience: RetryPolicy): Api =>
  createClient<paths>({
    baseUrl: server,
    redirect: 'manual',
    fetch: (request) => withRetry(repeatable(request), patience),
  })

/** Who calls, and where. */
export interface Credentials {
  server: string
  /** A token that is valid now. Pass one that the platform has refused as expired to get another. */
  bearer: (patience: RetryPolicy, refused?: string) => Promise<string>
}

/** Calls with the caller's token; an expired one is renewed. */
export const authorised = ({ server, bearer }: Credentials, patience: RetryPolicy): Api =>
  createClient<paths>({
    baseUrl: server,
    redirect: 'manual',
    fetch: async (request) => {
      const keyed = repeatable(request)
      const token = await bearer(patience)
      const response = await withRetry(withToken(keyed, token), patience)
      const isExpired = response.status === 401 && (await response.clone().text()).includes('"error":"token_expired"')
      const fresh = isExpired ? await bearer(patience, token) : token
      return fresh === token ? response : withRetry(withToken(keyed, fresh), patience)
    },
  })

/** The platform does a POST once for one key, however often it arrives (D28). */
function repeatable(request: Request): Request {
  if (request.method === 'POST') request.headers.set('idempotency-key', randomUUID())
  return request
}

function withToken(request: Request, token: string): Request {
  const copy = request.clone()
  copy.headers.set('authorization', `Bearer ${token}`)
  return copy
}
