import { setTimeout as delay } from 'node:timers/promises'
import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import type { Platform } from '../conformance/support/platform.ts'
import { waitFor } from './wait-for.ts'

/** A pause between requests, so that clients do not use the whole machine. */
const readingMs = 25

export class Traffic implements AsyncDisposable {
  failures: string[] = []
  answers = 0
  readonly #calling: Promise<void[]>
  readonly #underWay = new Set<Promise<unknown>>()
  #isOver = false

  private constructor(platform: Platform, admin: Client, clients: number) {
    this.#calling = Promise.all(Array.from({ length: clients }, () => this.#call(platform, admin)))
  }

  static async start(platform: Platform, clients: number): Promise<Traffic> {
    return new Traffic(platform, await platform.admin, clients)
  }

  async more(answers: number): Promise<void> {
    const enough = this.answers + answers
    await waitFor(`${answers} more answers`, async () => this.answers >= enough)
  }

  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true
    await this.#calling
  }

  async #call(platform: Platform, admin: Client): Promise<void> {
    while (!this.#isOver) {
      await this.#note(() => admin.get('/api/v1/auth/me'), 200)
      await this.#note(() => admin.get('/api/v1/clusters'), 200)
      const site = await this.#note(() => admin.post('/api/v1/sites', { name: platform.newName() }), 201)
      if (site !== undefined) await this.#note(() => admin.delete(`/api/v1/sites/${site.id}`), 204)
      await this.#note(() => platform.anonymous.get('/health/ready'), 200)
    }
  }

  async #note(call: () => ReturnType<Client['get']>, status: number): Promise<any> {
    const noted = this.#noted(call, status)
    this.#underWay.add(noted)
    const answer = await noted
    this.#underWay.delete(noted)
    await delay(readingMs)
    return answer
  }

  async #noted(call: () => ReturnType<Client['get']>, status: number): Promise<any> {
    try {
      return expectStatus(await call(), status)
    } catch (error) {
      this.failures.push(error instanceof Error ? error.message : String(error))
      return undefined
    } finally {
      this.answers++
    }
  }
}
