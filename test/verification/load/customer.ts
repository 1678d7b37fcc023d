import { randomUUID } from 'node:crypto'
import { expectStatus } from '../../conformance/support/answer.ts'
import { jobFor } from '../../conformance/support/batch.ts'
import { newUserBody } from '../../conformance/support/person.ts'
import type { Relay } from '../../conformance/support/relay.ts'
import { waitFor } from '../../support/wait-for.ts'
import type { PatientClient } from './patient-client.ts'
import type { Promised } from './promised.ts'

/** Where the work of a load goes to. */
export interface Targets {
  /** A cluster whose relay runs scripts. */
  workingId: string
  /** A cluster without a relay. */
  parkedId: string
  /** The file that each script appends its line to. */
  ledger: string
}

const jobs = '/api/v1/jobs'
const notifications = '/api/v1/notifications'

/** Somebody who uses the platform, in a session of its own, and a relay without scripts. Calls throw what was no success. */
export class Customer {
  readonly #anonymous: PatientClient
  readonly #promised: Promised
  readonly #targets: Targets
  readonly #relay: Relay
  #tokens: { accessToken: string; refreshToken: string }

  constructor(anonymous: PatientClient, tokens: any, relay: Relay, targets: Targets, promised: Promised) {
    this.#anonymous = anonymous
    this.#tokens = tokens
    this.#relay = relay
    this.#targets = targets
    this.#promised = promised
  }

  get #client() {
    return this.#anonymous.withToken(this.#tokens.accessToken)
  }

  /** Everything that a customer does, in pieces that may follow each other in any order. */
  readonly deeds: readonly (() => Promise<void>)[] = [
    () => this.#register(),
    () => this.#work(),
    () => this.#park(),
    () => this.#batch(),
    () => this.#relayJob(),
    () => this.#refresh(),
    () => this.#people(),
    () => this.#site(),
    () => this.#settings(),
    () => this.#read(),
  ]

  async #register(): Promise<void> {
    const body = { name: `loaded ${randomUUID()}`, type: 'Hypervisor' }
    const { id, name } = expectStatus(await this.#client.post('/api/v1/clusters', body), 201)
    this.#promised.clusters.push({ id, name })
  }

  async #work(): Promise<void> {
    const line = `line ${randomUUID()}`
    this.#promised.worked.set(line, await this.#submit(this.#targets.workingId, this.#script(line)))
  }

  /** Every other one is cancelled; the rest is left to its deadline. */
  async #park(): Promise<void> {
    const isLeft = this.#promised.parked.size % 2 === 1
    const id = await this.#submit(this.#targets.parkedId, 'true', isLeft ? { deliverWithinSeconds: 2 } : {})
    this.#promised.parked.add(id)
    if (isLeft) return
    expectStatus(await this.#client.post(`${jobs}/${id}/cancel`), 202)
    this.#promised.cancelled.add(id)
  }

  async #batch(): Promise<void> {
    const lines = Array.from({ length: 3 }, () => `line ${randomUUID()}`)
    const body = { jobs: lines.map((line) => jobFor(this.#targets.workingId, this.#script(line))), maxConcurrency: 2 }
    const { batchId: id, jobIds } = expectStatus(await this.#client.post(`${jobs}/batch`, body), 202)
    this.#promised.batches.push({ id, jobIds, lines, read: (path) => this.#client.get(path) })
  }

  /** A job from its submission to its end, with the calls of a relay. */
  async #relayJob(): Promise<void> {
    const relay = this.#relay
    const id = await this.#submit(relay.clusterId, 'true')
    await waitFor(`the relay is told of ${id}`, async () =>
      expectStatus(await relay.heartbeat({}, 'wait=5'), 200).jobs.includes(id),
    )
    const { leaseId } = await relay.claim(id)
    expectStatus(await relay.output(id, { leaseId, seq: 0, data: 'done\n' }), 200)
    expectStatus(await relay.complete(id, leaseId, 0), 200)
    this.#promised.completed.add(id)
  }

  async #refresh(): Promise<void> {
    const { refreshToken } = this.#tokens
    this.#tokens = expectStatus(await this.#anonymous.post('/api/v1/auth/refresh', { refreshToken }), 200)
    expectStatus(await this.#client.get('/api/v1/auth/me'), 200)
  }

  /** Every other user that is created is removed. */
  async #people(): Promise<void> {
    const { id } = expectStatus(await this.#client.post('/api/v1/users', newUserBody(['Viewer'])), 201)
    expectStatus(await this.#client.patch(`/api/v1/users/${id}`, { roles: ['Operator'] }), 200)
    this.#promised.users.add(id)
    if (this.#promised.users.size % 2 === 0) return
    expectStatus(await this.#client.delete(`/api/v1/users/${id}`), 204)
    this.#promised.removed.add(id)
  }

  async #site(): Promise<void> {
    const { id } = expectStatus(await this.#client.post('/api/v1/sites', { name: `site ${randomUUID()}` }), 201)
    expectStatus(await this.#client.delete(`/api/v1/sites/${id}`), 204)
  }

  async #settings(): Promise<void> {
    const me = '/api/v1/users/me'
    const layout = [{ widgetId: randomUUID(), x: 0, y: 1, w: 4, h: 3 }]
    expectStatus(await this.#client.patch(`${me}/dashboard-layout`, { layout }), 204)
    const filter = { name: randomUUID(), context: 'clusters', filter: { status: 'Offline' } }
    const { id } = expectStatus(await this.#client.post(`${me}/saved-filters`, filter), 201)
    expectStatus(await this.#client.delete(`${me}/saved-filters/${id}`), 204)
  }

  async #read(): Promise<void> {
    for (const path of ['/api/v1/clusters', jobs, `${jobs}/batch`, '/api/v1/portal/summary', '/api/v1/sites']) {
      expectStatus(await this.#client.get(path), 200)
    }
    const { items } = expectStatus(await this.#client.get(`${notifications}?unreadOnly=true`), 200)
    const ids = items.slice(0, 5).map(({ id }: any) => id)
    expectStatus(await this.#client.patch(notifications, { ids }), 204)
  }

  #script = (line: string): string => `echo '${line}' >>'${this.#targets.ledger}'; echo '${line}'`

  async #submit(clusterId: string, script: string, rest: object = {}): Promise<string> {
    const { id } = expectStatus(await this.#client.post(jobs, { ...jobFor(clusterId, script), ...rest }), 202)
    return id
  }
}
