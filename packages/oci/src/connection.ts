import { failureOf } from './response.ts'
import { authorizationFor, type AuthenticationContext } from './authentication.ts'
import type { ClientOptions } from './client.ts'
import { RegistryError } from './error.ts'
import { originOf } from './origin.ts'
import type { TransportResponse } from './transport.ts'

export interface Call {
  /** Name of the requested content in error messages. */
  description: string
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  url: URL
  /** Scopes that a token must grant, such as `repository:team/hello:pull`. */
  scopes: readonly string[]
  /** Statuses that the caller handles. Any other status is an error. */
  statuses: readonly number[]
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array
  /** Maximum size of the response body, 64 KiB by default. */
  maxBytes?: number
  /** Blob bytes in the request or response. Extends the timeout. */
  blobBytes?: number
}

export interface RegistryConnection {
  registry: string
  /** Returns the URL of an API path such as `team/hello/tags/list`. */
  urlOf: (path: string) => URL
  /** Sends a request to the registry, with credentials if the registry requires them. */
  send: (call: Call) => Promise<TransportResponse>
  sendWithoutCredentials: (call: Call) => Promise<TransportResponse>
  isOwn: (url: URL) => boolean
  origin: URL
}

export interface RepositoryConnection extends RegistryConnection {
  repository: string
}

const defaultMaxBytes = 64 * 1024
const minBytesPerMs = 100

/** Creates a connection; sends no request yet. Throws `RegistryError` if the registry name is invalid. */
export function connectRegistry(registry: string, options: ClientOptions): RegistryConnection {
  const { credentials = async () => undefined, trustedRealms = ['auth.docker.io'] } = options
  const origin = originOf(registry)
  const transfer = createTransfer(registry, options)
  // Reuses each authorization until the registry rejects it, so that clock skew does not matter.
  const authorizations = new Map<string, string>()
  const sendAs = (call: Call, authorization: string | undefined) =>
    transfer({ ...call, headers: { ...call.headers, ...(authorization && { authorization }) } })
  const context: AuthenticationContext = {
    registry,
    origin,
    trustedRealms,
    credentials,
    send: (url, headers) => transfer({ description: 'a token', method: 'GET', url, headers, scopes: [], statuses: [] }),
  }
  return {
    registry,
    origin,
    urlOf: (path) => new URL(`/v2/${path}`, origin),
    isOwn: (url) => url.origin === origin.origin,
    send: async (call) => {
      const key = call.scopes.join(' ')
      const response = await sendAs(call, authorizations.get(key))
      if (response.status !== 401) return requireStatus(registry, call, response)
      authorizations.delete(key)
      const authorization = await authorizationFor(context, response, call.scopes)
      const retryResponse = await sendAs(call, authorization)
      if (retryResponse.status !== 401) authorizations.set(key, authorization)
      return requireStatus(registry, call, retryResponse)
    },
    sendWithoutCredentials: async (call) => requireStatus(registry, call, await transfer(call)),
  }
}

function requireStatus(
  registry: string,
  { description, statuses }: Call,
  response: TransportResponse,
): TransportResponse {
  if (statuses.includes(response.status)) return response
  throw failureOf(registry, description, response)
}

const createTransfer =
  (registry: string, { transport, timeoutMs = 10_000 }: ClientOptions) =>
  async ({ description, method, url, headers = {}, body, maxBytes = defaultMaxBytes, blobBytes = 0 }: Call) => {
    const limits = { timeoutMs: timeoutMs + blobBytes / minBytesPerMs, maxBytes }
    try {
      return await transport(url.href, { method, headers, ...(body && { body }), ...limits })
    } catch (cause) {
      const message = `Registry ${registry} did not respond completely to the request for ${description}. Check its name and that it is reachable.`
      throw new RegistryError('unreachable', message, { cause })
    }
  }
