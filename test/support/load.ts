import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { waitFor } from './wait-for.ts'

/** What the platform has promised: everything that it answered with success. */
export interface Promised {
  clusters: { id: string; name: string }[]
  /** Jobs for a relay, by the line that each of them prints. */
  worked: Map<string, string>
  /** Jobs that no relay will ever take. */
  parked: Set<string>
  cancelled: Set<string>
}

/** Where the load goes to. */
export interface Targets {
  admin: Client
  /** A cluster whose relay runs jobs. */
  workingId: string
  /** A cluster without a relay. */
  parkedId: string
  /** The file that each working job appends its line to. */
  ledger: string
}

/** Clients that register, submit and cancel, one call after another, until the platform goes away. */
export class Load {
  readonly promised: Promised = { clusters: [], worked: new Map(), parked: new Set(), cancelled: new Set() }
  readonly #targets: Targets
  #answers = 0
  #lines = 0

  constructor(targets: Targets) {
    this.#targets = targets
  }

  /** Lets clients call until so many calls are answered, and ends the platform in the middle of the next ones. */
  async untilKilled(clients: number, answers: number, kill: () => Promise<void>): Promise<void> {
    const enough = this.#answers + answers
    const calling = Array.from({ length: clients }, () => this.#call())
    await waitFor(`${answers} more answers`, async () => this.#answers >= enough)
    await kill()
    await Promise.all(calling)
  }

  async #call(): Promise<void> {
    try {
      for (;;) {
        await this.#register()
        await this.#work()
        await this.#park()
      }
    } catch (error) {
      // So `fetch` says that nobody answers, or that an answer was cut off.
      if (!(error instanceof TypeError)) throw error
    }
  }

  async #register(): Promise<void> {
    const name = `loaded ${crypto.randomUUID()}`
    const answer = await this.#targets.admin.post('/api/v1/clusters', { name, type: 'Hypervisor' })
    this.promised.clusters.push(expectStatus(answer, 201))
    this.#answers++
  }

  async #work(): Promise<void> {
    const line = `line ${++this.#lines}`
    const script = `echo '${line}' >>'${this.#targets.ledger}'; echo '${line}'`
    this.promised.worked.set(line, await this.#submit(this.#targets.workingId, { payload: { script } }))
  }

  /** Every other parked job is cancelled; the rest is left to its deadline. */
  async #park(): Promise<void> {
    const job = { payload: { script: 'true' }, deliverWithinSeconds: 5 }
    const jobId = await this.#submit(this.#targets.parkedId, job)
    this.promised.parked.add(jobId)
    if (this.promised.parked.size % 2 === 0) return
    expectStatus(await this.#targets.admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
    this.promised.cancelled.add(jobId)
    this.#answers++
  }

  async #submit(clusterId: string, job: object): Promise<string> {
    const answer = await this.#targets.admin.post('/api/v1/jobs', { clusterId, type: 'InvokeScript', ...job })
    const { id } = expectStatus(answer, 202)
    this.#answers++
    return id
  }
}
