import { answered } from '../../conformance/answer.ts'
import type { Client } from '../../conformance/client.ts'
import { until } from '../../conformance/until.ts'

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

/** Several clients that register, submit and cancel until they are told to stop, through all kills and restarts. */
export class Load {
  readonly promised: Promised = { clusters: [], worked: new Map(), parked: new Set(), cancelled: new Set() }
  readonly #targets: Targets
  readonly #clients: Promise<void>[]
  #answers = 0
  #lines = 0
  #isStopped = false

  constructor(targets: Targets, clients: number) {
    this.#targets = targets
    this.#clients = Array.from({ length: clients }, () => this.#run())
  }

  /** Returns when that many more calls have been answered: in the middle of the next ones. */
  async proceeds(answers: number): Promise<void> {
    const enough = this.#answers + answers
    await until(`${answers} more answers`, async () => this.#answers >= enough)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#clients)
  }

  async #run(): Promise<void> {
    const turns = [() => this.#register(), () => this.#work(), () => this.#park()]
    for (let turn = 0; !this.#isStopped; turn++) await this.#attempt(turns[turn % turns.length] ?? this.#work)
  }

  /** A platform that is away, or starting, answers nothing that counts. */
  async #attempt(call: () => Promise<void>): Promise<void> {
    try {
      await call()
      this.#answers++
    } catch (error) {
      const isAway = error instanceof TypeError || String(error).includes(' answered 503 ')
      if (!isAway) throw error
      const { admin } = this.#targets
      const isBack = () =>
        admin.get('/health/ready').then(
          ({ status }) => status === 200,
          () => false,
        )
      await until('the platform is back', isBack)
    }
  }

  async #register(): Promise<void> {
    const name = `loaded ${crypto.randomUUID()}`
    const answer = await this.#targets.admin.post('/api/v1/clusters', { name, type: 'Hypervisor' })
    this.promised.clusters.push(answered(answer, 201))
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
    const answer = await this.#targets.admin.post(`/api/v1/jobs/${jobId}/cancel`)
    // After a kill between the two calls its deadline may have passed.
    if (answer.status === 202) this.promised.cancelled.add(jobId)
    else answered(answer, 409, 'job_already_finished')
  }

  async #submit(clusterId: string, job: object): Promise<string> {
    const answer = await this.#targets.admin.post('/api/v1/jobs', { clusterId, type: 'InvokeScript', ...job })
    return answered(answer, 202).id
  }
}
