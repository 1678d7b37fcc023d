import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, parseJson } from './answer.ts'
import type { Contract } from './contract.ts'

export interface Sent {
  json?: unknown
  body?: string | Uint8Array
  headers?: Record<string, string>
}

/** Creates the `Authorization` header of a request. */
export type Authorize = (path: string, body: string | Uint8Array) => string | Promise<string>

const patienceSeconds = 60

/** Renews access tokens before they expire, because a run may take longer. */
const renewalMs = 600_000

/** Sends requests with one identity and checks every response against the contract. */
export class Client {
  readonly #baseUrl: string
  readonly #contract: Contract
  readonly #authorize: Authorize | undefined

  constructor(baseUrl: string, contract: Contract, authorize?: Authorize) {
    this.#baseUrl = baseUrl
    this.#contract = contract
    this.#authorize = authorize
  }

  as(authorize: Authorize): Client {
    return new Client(this.#baseUrl, this.#contract, authorize)
  }

  withToken(token: string): Client {
    return this.as(() => `Bearer ${token}`)
  }

  /** A client that renews its access token. */
  renewing(accessToken: string, renewed: () => Promise<string>): Client {
    let token = Promise.resolve(accessToken)
    let sinceMs = performance.now()
    return this.as(async () => {
      if (performance.now() - sinceMs > renewalMs) {
        sinceMs = performance.now()
        token = renewed()
      }
      return `Bearer ${await token}`
    })
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send('GET', path, { headers })
  }

  post(path: string, json?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send('POST', path, { json, headers })
  }

  put(path: string, json: unknown): Promise<Answer> {
    return this.send('PUT', path, { json })
  }

  patch(path: string, json: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.send('PATCH', path, { json, headers })
  }

  delete(path: string): Promise<Answer> {
    return this.send('DELETE', path)
  }

  /** Sends a request and waits for rate limits. Throws if the response violates the contract. */
  async send(method: string, path: string, sent: Sent = {}): Promise<Answer> {
    for (;;) {
      const answer = await this.attempt(method, path, sent)
      const waitSeconds = answer.status === 429 ? Number(answer.headers.get('retry-after')) : Infinity
      if (waitSeconds > patienceSeconds) return answer
      await delay(waitSeconds * 1000)
    }
  }

  /** Sends a request once. */
  async attempt(method: string, path: string, { json, body, headers = {} }: Sent = {}): Promise<Answer> {
    const content = body ?? (json === undefined ? '' : JSON.stringify(json))
    const response = await fetch(`${this.#baseUrl}${path}`, {
      method,
      headers: {
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...(this.#authorize && { authorization: await this.#authorize(path, content) }),
        ...headers,
      },
      ...(content.length > 0 && { body: content }),
      redirect: 'manual',
    })
    const text = await response.text()
    const answer = { method, path, status: response.status, headers: response.headers, text, body: parseJson(text) }
    this.#contract.check(answer)
    return answer
  }
}
