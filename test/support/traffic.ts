import { setTimeout as delay } from 'node:timers/promises'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { waitFor } from './wait-for.ts'

/** Pause between two requests of a client, so that the clients do not use the whole machine. */
const readingMs = 25

export class Traffic implements AsyncDisposable {
  failures: string[] = []
  responses = 0
  readonly #calling: Promise<void[]>
  readonly #pending = new Set<Promise<unknown>>()
  #isOver = false

  private constructor(platform: Platform, admin: Client, clients: number) {
    this.#calling = Promise.all(Array.from({ length: clients }, () => this.#call(platform, admin)))
  }

  static async start(platform: Platform, clients: number): Promise<Traffic> {
    return new Traffic(platform, await platform.admin, clients)
  }

  async waitForMore(responses: number): Promise<void> {
    const expected = this.responses + responses
    await waitFor(`${responses} more responses`, async () => this.responses >= expected)
  }

  async waitForPending(): Promise<void> {
    await Promise.all(this.#pending)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#calling
  }

  async #call(platform: Platform, admin: Client): Promise<void> {
    while (!this.#isOver) {
      await this.#track(() => admin.get('/api/v1/auth/me'), 200)
      await this.#track(() => admin.get('/api/v1/clusters'), 200)
      const site = await this.#track(() => admin.post('/api/v1/sites', { name: platform.newName() }), 201)
      if (site !== undefined) await this.#track(() => admin.delete(`/api/v1/sites/${site.id}`), 204)
      await this.#track(() => platform.anonymous.get('/health/ready'), 200)
    }
  }

  async #track(call: () => ReturnType<Client['get']>, status: number): Promise<any> {
    const request = this.#request(call, status)
    this.#pending.add(request)
    const response = await request
    this.#pending.delete(request)
    await delay(readingMs)
    return response
  }

  async #request(call: () => ReturnType<Client['get']>, status: number): Promise<any> {
    try {
      return expectStatus(await call(), status)
    } catch (error) {
      this.failures.push(error instanceof Error ? error.message : String(error))
      return undefined
    } finally {
      this.responses++
    }
  }
}
