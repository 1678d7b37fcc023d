import { failureOf } from './response.ts'
import { authorizationFor, type RegistryPrincipal } from './authentication.ts'
import type { ClientOptions } from './client.ts'
import { RegistryError } from './error.ts'
import { originOf } from './origin.ts'
import type { TransportAnswer } from './transport.ts'

/** One request to a registry. */
export interface Call {
  /** What is asked for, as messages name it. */
  what: string
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  url: URL
  /** What a token has to allow, such as `repository:team/hello:pull`. */
  scopes: readonly string[]
  /** The answers that the caller understands; every other is a failure. */
  statuses: readonly number[]
  headers?: Readonly<Record<string, string>>
  body?: Uint8Array
  /** Of the answer; 64 KiB by default. */
  maxBytes?: number
  /** Of request and answer, which get time by it. */
  blobBytes?: number
}

/** The way to one registry. Everything that it throws is a `RegistryFailure`. */
export interface RegistryConnection {
  registry: string
  /** The address of a path of the API: `team/hello/tags/list`. */
  at: (path: string) => URL
  /** Sends a request to the registry itself, and proves who asks where the registry wants to know. */
  send: (call: Call) => Promise<TransportAnswer>
  /** Sends a request to wherever, without a word on who asks. */
  sendBare: (call: Call) => Promise<TransportAnswer>
  isOwn: (url: URL) => boolean
  origin: URL
}

const shortAnswerBytes = 64 * 1024
const slowestBytesPerMs = 100

/** Opens the way to a registry; nothing is sent yet. Throws `RegistryFailure` where the name cannot be one. */
export function connectRegistry(registry: string, options: ClientOptions): RegistryConnection {
  const { credentials = async () => undefined, trustedRealms = ['auth.docker.io'] } = options
  const origin = originOf(registry)
  const transfer = transferBy(registry, options)
  // Used until the registry refuses them: no clock has to agree with its.
  const authorizations = new Map<string, string>()
  const sendAs = (call: Call, authorization: string | undefined) =>
    transfer({ ...call, headers: { ...call.headers, ...(authorization && { authorization }) } })
  const party: RegistryPrincipal = {
    registry,
    origin,
    trustedRealms,
    credentials,
    send: (url, headers) => transfer({ what: 'a token', method: 'GET', url, headers, scopes: [], statuses: [] }),
  }
  return {
    registry,
    origin,
    at: (path) => new URL(`/v2/${path}`, origin),
    isOwn: (url) => url.origin === origin.origin,
    send: async (call) => {
      const key = call.scopes.join(' ')
      const answer = await sendAs(call, authorizations.get(key))
      if (answer.status !== 401) return expected(registry, call, answer)
      authorizations.delete(key)
      const authorization = await authorizationFor(party, answer, call.scopes)
      const second = await sendAs(call, authorization)
      if (second.status !== 401) authorizations.set(key, authorization)
      return expected(registry, call, second)
    },
    sendBare: async (call) => expected(registry, call, await transfer(call)),
  }
}

function expected(registry: string, { what, statuses }: Call, answer: TransportAnswer): TransportAnswer {
  if (statuses.includes(answer.status)) return answer
  throw failureOf(registry, what, answer)
}

const transferBy =
  (registry: string, { transport, timeoutMs = 10_000 }: ClientOptions) =>
  async ({ what, method, url, headers = {}, body, maxBytes = shortAnswerBytes, blobBytes = 0 }: Call) => {
    const limits = { timeoutMs: timeoutMs + blobBytes / slowestBytesPerMs, maxBytes }
    try {
      return await transport(url.href, { method, headers, ...(body && { body }), ...limits })
    } catch (cause) {
      const message = `Registry ${registry} gave no whole answer to ${what}. Check its name and that it can be reached.`
      throw new RegistryError('unreachable', message, { cause })
    }
  }
