import type { InvokeScriptPayload } from '@platform/contract/job'
import { OutputHash } from '@platform/contract/output-hash'
import { randomUUID } from 'node:crypto'
import { Execution, type StopReason, notStarted } from './execution.ts'
import type { StopMode } from './executor/executor.ts'
import { info, warn } from './log.ts'
import type { RelayNode } from './node.ts'
import { Output } from './output.ts'
import { claimJob, complete, reportCompletion, warnOnError } from './report.ts'
import type { JobDeps } from './job-deps.ts'
import { StatementError, type UnverifiedClaim, verifyClaim } from './statement.ts'
import { type Lease, Upload } from './upload.ts'

type AcceptedJob = { payload: InvokeScriptPayload; nodes: RelayNode[] }

/** One job, from its claim to the report of its result. */
export class JobRun {
  readonly #jobId: string
  readonly #deps: JobDeps
  readonly #onSlotReleased: () => void
  #execution: Execution | undefined
  #stopRequest: { reason: StopReason; mode: StopMode } | undefined
  #isLeased = false
  #usesSlot = true

  constructor(jobId: string, deps: JobDeps, onSlotReleased: () => void) {
    this.#jobId = jobId
    this.#deps = deps
    this.#onSlotReleased = onSlotReleased
  }

  get isLeased(): boolean {
    return this.#isLeased
  }

  /** Whether the script is running or may still start. */
  get usesSlot(): boolean {
    return this.#usesSlot
  }

  /** Claims the job and runs it, or rejects it if the journal already contains it. */
  async run(): Promise<void> {
    const { journal } = this.#deps
    const jobId = this.#jobId
    const isReplay = journal.has(jobId)
    const claimKey = randomUUID()
    // An existing entry is kept, because it prevents a second run.
    if (!isReplay) journal.append({ state: 'claiming', jobId, claimKey })
    const claim = await claimJob(this.#deps, jobId, claimKey)
    if (claim) {
      this.#isLeased = true
      await (isReplay ? this.reject(claim, 'this relay has already claimed it') : this.#handle(claim))
    } else if (!isReplay) {
      journal.append({ state: 'dropped', jobId })
    }
  }

  /** Runs a job that a heartbeat has claimed. The journal must already contain the job. */
  async runClaimed(claim: UnverifiedClaim): Promise<void> {
    this.#isLeased = true
    await this.#handle(claim, true)
  }

  async reject({ leaseId }: UnverifiedClaim, reason: string): Promise<void> {
    this.#isLeased = true
    warn(`Job ${this.#jobId} was rejected and not run: ${reason}.`)
    this.#releaseSlot()
    await complete(this.#deps, { jobId: this.#jobId, leaseId }, notStarted('rejected'))
  }

  /** Stops the script, or prevents its start. */
  stop(reason: StopReason, mode: StopMode): void {
    this.#stopRequest = { reason, mode }
    this.#execution?.stop(reason, mode)
  }

  #releaseSlot(): void {
    this.#usesSlot = false
    this.#onSlotReleased()
  }

  async #handle(claim: UnverifiedClaim, isRecorded = false): Promise<void> {
    const lease = { jobId: this.#jobId, leaseId: claim.leaseId }
    try {
      const accepted = this.#accept(claim)
      if (!isRecorded) this.#deps.journal.append({ state: 'started', ...lease, leaders: [] })
      await this.#execute(lease, accepted)
    } catch (error) {
      if (!(error instanceof StatementError)) throw error
      warn(`Job ${this.#jobId} was rejected and not run: ${error.message}.`)
      this.#releaseSlot()
      await reportCompletion(this.#deps, lease, notStarted('rejected'))
    }
  }

  #accept(claim: UnverifiedClaim): AcceptedJob {
    const { clusterId, statementKeys, clock, nodes } = this.#deps
    const keys = statementKeys.trustedKeys
    const payload = verifyClaim(claim, { jobId: this.#jobId, clusterId, keys, nowMs: clock.now() })
    const targetIds = payload.targetNodeIds ? new Set(payload.targetNodeIds) : new Set(nodes.map(({ id }) => id))
    const targetNodes = nodes.filter(({ id }) => targetIds.has(id))
    if (targetNodes.length < targetIds.size) throw new StatementError('it is for a node that this relay does not serve')
    return { payload, nodes: targetNodes }
  }

  async #execute(lease: Lease, { payload, nodes }: AcceptedJob): Promise<void> {
    const { client, journal, server, signal } = this.#deps
    const { jobId } = lease
    info(`Job ${jobId}: running on ${nodes.length} node(s).`)
    const onCancel = () => this.stop('cancelled', 'graceful')
    const keepsLast = () => server.acceptsLastOutput
    const upload = new Upload({ lease, output: new Output(), client, keepsLast, onCancel })
    upload.start(signal)
    const hash = new OutputHash()
    this.#execution = new Execution({
      jobId,
      payload,
      nodes,
      onOutput: (nodeId, stream, bytes) => {
        hash.append(nodeId, stream, bytes)
        upload.append(nodeId, stream, bytes)
      },
      onSpawned: (leader) => warnOnError(() => journal.append({ state: 'spawned', jobId, leader })),
    })
    if (this.#stopRequest) this.#execution.stop(this.#stopRequest.reason, this.#stopRequest.mode)
    const completion = await this.#execution.run()
    this.#releaseSlot()
    await reportCompletion(this.#deps, lease, { ...completion, outputSha256: hash.digest() }, upload)
  }
}
