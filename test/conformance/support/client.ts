import { setTimeout as delay } from 'node:timers/promises'
import { type ApiResponse, parseJson } from './answer.ts'
import type { Contract } from './contract.ts'

export interface RequestContent {
  json?: unknown
  body?: string | Uint8Array
  headers?: Record<string, string>
}

export type Authorize = (path: string, body: string | Uint8Array) => string | Promise<string>

const maxWaitSeconds = 60

/** Access tokens are renewed at this interval, which is shorter than their validity. */
const renewalMs = 600_000

export class Client {
  readonly baseUrl: string
  readonly #contract: Contract
  readonly #authorize: Authorize | undefined

  constructor(baseUrl: string, contract: Contract, authorize?: Authorize) {
    this.baseUrl = baseUrl
    this.#contract = contract
    this.#authorize = authorize
  }

  as(authorize: Authorize): Client {
    return new Client(this.baseUrl, this.#contract, authorize)
  }

  withToken(token: string): Client {
    return this.as(() => `Bearer ${token}`)
  }

  renewing(accessToken: string, renew: () => Promise<string>): Client {
    let token = Promise.resolve(accessToken)
    let renewedAtMs = performance.now()
    return this.as(async () => {
      if (performance.now() - renewedAtMs > renewalMs) {
        renewedAtMs = performance.now()
        token = renew()
      }
      return `Bearer ${await token}`
    })
  }

  get(path: string, headers: Record<string, string> = {}): Promise<ApiResponse> {
    return this.send('GET', path, { headers })
  }

  post(path: string, json?: unknown, headers: Record<string, string> = {}): Promise<ApiResponse> {
    return this.send('POST', path, { json, headers })
  }

  put(path: string, json: unknown): Promise<ApiResponse> {
    return this.send('PUT', path, { json })
  }

  patch(path: string, json: unknown, headers: Record<string, string> = {}): Promise<ApiResponse> {
    return this.send('PATCH', path, { json, headers })
  }

  delete(path: string): Promise<ApiResponse> {
    return this.send('DELETE', path)
  }

  /**
   * Sends a request. Repeats the request after a rate limit, unless `Retry-After` exceeds `maxWaitSeconds`. Throws if a
   * response violates the contract.
   */
  async send(method: string, path: string, content: RequestContent = {}): Promise<ApiResponse> {
    for (;;) {
      const response = await this.attempt(method, path, content)
      const waitSeconds = response.status === 429 ? Number(response.headers.get('retry-after')) : Infinity
      if (waitSeconds > maxWaitSeconds) return response
      await delay(waitSeconds * 1000)
    }
  }

  async attempt(method: string, path: string, { json, body, headers = {} }: RequestContent = {}): Promise<ApiResponse> {
    const text = body ?? (json === undefined ? '' : JSON.stringify(json))
    const response = await fetch(`${this.baseUrl}${path}`, {
      method,
      headers: {
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...(this.#authorize && { authorization: await this.#authorize(path, text) }),
        ...headers,
      },
      ...(text.length > 0 && { body: text }),
      redirect: 'manual',
    })
    const responseText = await response.text()
    const { status, headers: responseHeaders } = response
    const result = { method, path, status, headers: responseHeaders, text: responseText, body: parseJson(responseText) }
    this.#contract.check(result)
    return result
  }
}
