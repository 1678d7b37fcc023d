import { createHash, type KeyObject, randomUUID } from 'node:crypto'
import { retryUntilDecision } from './backoff.ts'
import type { ServerClock } from './clock.ts'
import { codeOf, foreignResponse, type RelayResponse, post, RetryableError } from './http.ts'
import { signJws } from './jws.ts'
import { info, warn } from './log.ts'
import { relayVersion } from './version.ts'

const audience = 'platform-relay'
const tokenLifetimeSeconds = 55
// Keeps a token valid if the relay's clock is slightly ahead of the server's.
const backdateSeconds = 5
const promptResponseMs = 2000

export type Call = {
  path: string
  body?: object
  headers?: Record<string, string>
  timeoutMs?: number
  signal: AbortSignal
  /** Whether a response without an error has the documented form. Another form comes from a proxy or a sign-in page. */
  isSuccess: (response: RelayResponse) => boolean
}

export type Signer = { server: string; relayId: string; privateKey: KeyObject }

/** Sends signed requests to the server. */
export class Client {
  readonly #signer: Signer
  readonly #clock: ServerClock
  readonly #onRevoked: () => void
  #isConnected: boolean | undefined

  constructor(signer: Signer, clock: ServerClock, onRevoked: () => void) {
    this.#signer = signer
    this.#clock = clock
    this.#onRevoked = onRevoked
  }

  /**
   * Sends the request once. Throws `RetryableError` if the server did not decide or does not accept the identity, and
   * the reason of the signal if it aborts.
   */
  async attempt(call: Call): Promise<RelayResponse> {
    const startedMs = performance.now()
    try {
      const response = await this.#post(call)
      if (response.status < 400 && !call.isSuccess(response)) throw new RetryableError(foreignResponse)
      const isRejected = response.status === 401
      // The `Date` of a late response is not the current time.
      const isImmediate = performance.now() - startedMs < promptResponseMs
      if (isImmediate || isRejected) this.#clock.observe(response.headers.date)
      if (isRejected) this.#onRejected(response)
      this.#onResponse()
      return response
    } catch (error) {
      if (error instanceof RetryableError) this.#onNoResponse(error)
      throw error
    }
  }

  /** Sends the request until the server decides or the signal aborts. */
  deliver(call: Call): Promise<RelayResponse> {
    return retryUntilDecision(call.signal, () => this.attempt(call))
  }

  /**
   * Tries to claim a job that does not exist, which has no effect. The response is `job_not_found` if the relay is
   * accepted, and `job_not_claimable` if it waits for approval.
   */
  probe(): Promise<RelayResponse> {
    const { signal } = new AbortController()
    return this.#post({ path: `/jobs/job_${'0'.repeat(26)}/claim`, body: {}, timeoutMs: 15_000, signal })
  }

  channelPassword(clientId: string): string {
    return this.#createToken({ path: `mqtt:${clientId}` })
  }

  #post({ path, body, headers, timeoutMs = 30_000, signal }: Omit<Call, 'isSuccess'>): Promise<RelayResponse> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const apiPath = `/api/v1/relay${path}`
    return post({
      url: `${this.#signer.server}${apiPath}`,
      headers: {
        authorization: `Relay ${this.#createToken({ path: apiPath, bodySha256: createHash('sha256').update(text).digest('base64url') })}`,
        'user-agent': `platform-relay/${relayVersion}`,
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: text,
      timeoutMs,
      signal,
    })
  }

  #createToken(subject: { path: string; bodySha256?: string }): string {
    const iat = this.#clock.now() / 1000 - backdateSeconds
    const claims = { aud: audience, iat, exp: iat + tokenLifetimeSeconds, jti: randomUUID(), ...subject }
    return signJws({ typ: 'relay+jwt', kid: this.#signer.relayId }, claims, this.#signer.privateKey)
  }

  // A 401 without `relay_revoked` can come from a wrong clock or a server that is being restored, so the
  // request can be retried.
  #onRejected(response: RelayResponse): never {
    const code = codeOf(response)
    if (code === 'relay_revoked') this.#onRevoked()
    throw new RetryableError(`it does not accept the identity of this relay (${code})`)
  }

  #onResponse(): void {
    if (!this.#isConnected) info(`Connected to ${this.#signer.server}.`)
    this.#isConnected = true
  }

  #onNoResponse(error: RetryableError): void {
    if (this.#isConnected !== false) {
      warn(`The server ${this.#signer.server} is not available to this relay: ${error.message}. Retrying.`)
    }
    this.#isConnected = false
  }
}
