import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, parseJson } from './answer.ts'
import type { Contract } from './contract.ts'

/** A request beyond its method and path. */
export interface Sent {
  json?: unknown
  body?: string | Uint8Array
  headers?: Record<string, string>
}

/** Makes the `Authorization` header of one request with this body. */
export type Authorize = (path: string, body: string | Uint8Array) => string | Promise<string>

const patienceSeconds = 60

/** An access token lasts for a quarter of an hour, and a run on a slow machine may take longer. */
const renewalMs = 600_000

/** Calls the platform in one role, and holds each answer to the contract. */
export class Client {
  readonly #baseUrl: string
  readonly #contract: Contract
  readonly #authorize: Authorize | undefined

  constructor(baseUrl: string, contract: Contract, authorize?: Authorize) {
    this.#baseUrl = baseUrl
    this.#contract = contract
    this.#authorize = authorize
  }

  /** The same platform in another role. */
  as(authorize: Authorize): Client {
    return new Client(this.#baseUrl, this.#contract, authorize)
  }

  /** The same platform with a bearer token. */
  withToken(token: string): Client {
    return this.as(() => `Bearer ${token}`)
  }

  /** The same platform as whoever an access token is of: one that is made anew before it expires. */
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

  /** Sends a request; waits where a rate limit asks for it. Fails when the answer is not as the contract says. */
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
