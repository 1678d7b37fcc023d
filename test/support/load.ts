import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { waitFor } from './wait-for.ts'

export interface Promised {
  clusters: { id: string; name: string }[]
  /** Line of the ledger → job that prints it. */
  worked: Map<string, string>
  /** Jobs for a cluster without a relay. */
  parked: Set<string>
  cancelled: Set<string>
}

export interface Targets {
  admin: Client
  workingId: string
  parkedId: string
  /** The file to which each job appends its line. */
  ledger: string
}

export class Load {
  readonly promised: Promised = { clusters: [], worked: new Map(), parked: new Set(), cancelled: new Set() }
  readonly #targets: Targets
  #answers = 0
  #lines = 0

  constructor(targets: Targets) {
    this.#targets = targets
  }

  /** Calls the API until it has responded `answers` times, then kills the platform during the next calls. */
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
      // fetch reports connection errors as TypeError.
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

  /** Cancels every second job; the others reach their delivery timeout. */
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
