import { expectStatus } from '../conformance/support/answer.ts'
import type { Client } from '../conformance/support/client.ts'
import { waitFor } from './wait-for.ts'

export interface Acknowledged {
  clusters: { id: string; name: string }[]
  /** Line of the ledger → job that prints it. */
  jobsByLine: Map<string, string>
  /** Jobs for a cluster without a relay. */
  undeliveredJobIds: Set<string>
  cancelledJobs: Set<string>
}

export interface Targets {
  admin: Client
  workingClusterId: string
  offlineClusterId: string
  ledger: string
}

export class Load {
  readonly acknowledged: Acknowledged = {
    clusters: [],
    jobsByLine: new Map(),
    undeliveredJobIds: new Set(),
    cancelledJobs: new Set(),
  }
  readonly #targets: Targets
  #responses = 0
  #lines = 0

  constructor(targets: Targets) {
    this.#targets = targets
  }

  /** Calls the API until `responses` more responses have arrived, then kills the platform during the next calls. */
  async untilKilled(clients: number, responses: number, kill: () => Promise<void>): Promise<void> {
    const requiredResponses = this.#responses + responses
    const calling = Array.from({ length: clients }, () => this.#call())
    await waitFor(`${responses} more responses`, async () => this.#responses >= requiredResponses)
    await kill()
    await Promise.all(calling)
  }

  async #call(): Promise<void> {
    try {
      for (;;) {
        await this.#register()
        await this.#submitWorking()
        await this.#submitUndelivered()
      }
    } catch (error) {
      // fetch reports connection errors as TypeError.
      if (!(error instanceof TypeError)) throw error
    }
  }

  async #register(): Promise<void> {
    const name = `loaded ${crypto.randomUUID()}`
    const response = await this.#targets.admin.post('/api/v1/clusters', { name, type: 'Hypervisor' })
    this.acknowledged.clusters.push(expectStatus(response, 201))
    this.#responses++
  }

  async #submitWorking(): Promise<void> {
    const line = `line ${++this.#lines}`
    const script = `echo '${line}' >>'${this.#targets.ledger}'; echo '${line}'`
    this.acknowledged.jobsByLine.set(line, await this.#submit(this.#targets.workingClusterId, { payload: { script } }))
  }

  /**
   * Submits a job for the cluster without a relay. Cancels every second job; the others reach their delivery timeout.
   */
  async #submitUndelivered(): Promise<void> {
    const job = { payload: { script: 'true' }, deliverWithinSeconds: 5 }
    const jobId = await this.#submit(this.#targets.offlineClusterId, job)
    this.acknowledged.undeliveredJobIds.add(jobId)
    if (this.acknowledged.undeliveredJobIds.size % 2 === 0) return
    expectStatus(await this.#targets.admin.post(`/api/v1/jobs/${jobId}/cancel`), 202)
    this.acknowledged.cancelledJobs.add(jobId)
    this.#responses++
  }

  async #submit(clusterId: string, job: object): Promise<string> {
    const response = await this.#targets.admin.post('/api/v1/jobs', { clusterId, type: 'InvokeScript', ...job })
    const { id } = expectStatus(response, 202)
    this.#responses++
    return id
  }
}
