import type { Claim, Completion, OutputReport } from '@platform/contract/relay'
import { createHash, type KeyObject, randomUUID, sign } from 'node:crypto'

export type Refusal = { status: number; error: string }

export type JobSettings = {
  id: string
  clusterId: string
  payload: Record<string, unknown>
  signer: { kid: string; privateKey: KeyObject }
}

/** A job as the platform holds it: leased once, its output in order, its end final. */
export class PeerJob {
  readonly id: string
  readonly payload: Record<string, unknown>
  readonly chunks: OutputReport[] = []
  /** Every completion the relay sent, repetitions included. */
  readonly reports: Completion[] = []
  claimCount = 0
  isOffered = true
  isCancelled = false
  /** Ends the job behind the back of the relay. */
  isOver = false
  completion: Completion | undefined
  claim: Claim | undefined
  #claimKey: string | undefined

  constructor({ id, clusterId, payload, signer }: JobSettings) {
    this.id = id
    this.payload = payload
    this.#prepare = () => {
      const statement = signStatement({ jobId: id, clusterId, payload }, signer)
      return { leaseId: newId('lease'), leaseExpiresAt: inOneHour().toISOString(), statement, payload }
    }
  }

  readonly #prepare: () => Claim
  /** Changes what a claim is answered with, as an attacker on the way would. */
  tamper: (claim: Claim) => Claim = (claim) => claim

  take(claimKey: string | undefined): Claim | Refusal {
    if (this.claim && claimKey !== this.#claimKey) return { status: 409, error: 'job_not_claimable' }
    if (this.isOver) return { status: 409, error: 'job_not_claimable' }
    this.#claimKey = claimKey
    this.claimCount += 1
    this.isOffered = false
    this.claim ??= this.tamper(this.#prepare())
    return this.claim
  }

  /** Offers the job once more, as a platform under attack might. */
  offerAgain(): void {
    this.claim = undefined
    this.completion = undefined
    this.isOffered = true
  }

  append(report: OutputReport): { nextSeq: number; cancel: boolean } | Refusal {
    const refusal = this.#refusalOf(report.leaseId)
    if (refusal) return refusal
    if (report.seq > this.chunks.length) return { status: 409, error: 'output_out_of_order' }
    if (report.seq === this.chunks.length) this.chunks.push(report)
    return { nextSeq: this.chunks.length, cancel: this.isCancelled }
  }

  complete(report: Completion): { jobId: string; status: string } | Refusal {
    this.reports.push(report)
    const refusal = this.completion ? undefined : this.#refusalOf(report.leaseId)
    if (refusal) return refusal
    this.completion ??= report
    return { jobId: this.id, status: this.completion.outcome === 'exited' ? 'Completed' : 'Failed' }
  }

  get output(): string {
    return this.chunks.map(({ data }) => data).join('')
  }

  outputOf(stream: OutputReport['stream']): string {
    return this.chunks
      .filter((chunk) => chunk.stream === stream)
      .map(({ data }) => data)
      .join('')
  }

  #refusalOf(leaseId: string): Refusal | undefined {
    if (leaseId !== this.claim?.leaseId) return { status: 409, error: 'lease_not_held' }
    return this.isOver ? { status: 409, error: 'job_already_finished' } : undefined
  }
}

export type Statement = { jobId: string; clusterId: string; payload: unknown; exp?: number }

/** A job statement as the platform signs it (D24). */
export function signStatement(statement: Statement, signer: { kid: string; privateKey: KeyObject }): string {
  const { jobId, clusterId, payload, exp = inOneHour().getTime() / 1000 } = statement
  const payloadSha256 = createHash('sha256').update(JSON.stringify(payload)).digest('hex')
  const header = { alg: 'EdDSA', typ: 'job-statement+jws', kid: signer.kid }
  const signed = [header, { jobId, clusterId, payloadSha256, exp }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signed}.${sign(null, Buffer.from(signed), signer.privateKey).toString('base64url')}`
}

/** An identifier of the platform's form (D11). */
export function newId(prefix: string): string {
  return `${prefix}_${createHash('sha256').update(randomUUID()).digest('hex').slice(0, 26)}`
}

function inOneHour(): Date {
  return new Date(Date.now() + 3_600_000)
}
