import { randomUUID } from 'node:crypto'
import { JobRun } from './job-run.ts'
import { type JournalRecord, keyRecord, type UnfinishedEntry } from './journal-entry.ts'
import { isJsonObject } from './json.ts'
import { messageOf, warn } from './log.ts'
import { recover } from './recovery.ts'
import type { JobDeps } from './job-deps.ts'
import type { UnverifiedClaim } from './statement.ts'
import type { Storage } from './storage.ts'

type ActiveJob = { run: Pick<JobRun, 'isLeased' | 'usesSlot' | 'stop'>; completion: Promise<void> }

export type WorkerPoolOptions = {
  deps: JobDeps
  slots: number
  storage: Storage
  onSlotFreed: () => void
  onJobDone: () => void
}

/** A job that the server has leased to this relay with a heartbeat. */
export type ClaimedJob = UnverifiedClaim & { jobId: string }

/** Returns the valid claims of a heartbeat response. Job ids become part of file names, so their form is checked. */
export function claimsIn(value: unknown): ClaimedJob[] {
  return (Array.isArray(value) ? value : []).flatMap((item: unknown) => {
    if (!isJsonObject(item)) return []
    const { jobId, leaseId, statement, payload } = item
    const isValid = typeof jobId === 'string' && /^\w{1,40}$/.test(jobId) && typeof leaseId === 'string'
    return isValid ? [{ jobId, leaseId, statement, payload }] : []
  })
}

/** Limits the jobs in progress beyond the slots, because the relay holds their results in memory. */
const maxExtraJobs = 16

/** The jobs in progress. A job uses a slot until its script ends, and stays in progress until its result is reported. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #jobs = new Map<string, ActiveJob>()
  readonly #rejectedIds = new Set<string>()
  #isClosed = false
  #isDraining = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  get freeSlots(): number {
    const unusedSlots = this.#unusedSlots
    return unusedSlots === 0 || this.isBlocked ? 0 : unusedSlots
  }

  /** Whether no job may start, even if slots are unused. */
  get isBlocked(): boolean {
    const { deps, storage } = this.#options
    return this.#isClosed || this.#isDraining || deps.statementKeys.isOutdated || !storage.isWritable
  }

  get #unusedSlots(): number {
    const { slots } = this.#options
    const usedSlots = [...this.#jobs.values()].filter(({ run }) => run.usesSlot).length
    const maxJobs = slots + Math.min(slots, maxExtraJobs)
    return Math.max(0, Math.min(slots - usedSlots, maxJobs - this.#jobs.size))
  }

  get isIdle(): boolean {
    return this.#jobs.size === 0
  }

  /** Makes `freeSlots` return 0. */
  drain(): void {
    this.#isDraining = true
  }

  get leasedJobIds(): string[] {
    return [...this.#jobs].filter(([, job]) => job.run.isLeased).map(([jobId]) => jobId)
  }

  /**
   * Starts a job if a slot is free. Returns false if the job was not started, or if an earlier claim of the job was
   * recorded or was rejected by the server.
   */
  offer(jobId: string): boolean {
    if (this.freeSlots === 0 || this.#jobs.has(jobId)) return false
    const isReplay = this.#options.deps.journal.has(jobId)
    const run = this.#newRun(jobId)
    this.#add(jobId, run, run.run())
    return !isReplay && !this.#rejectedIds.has(jobId)
  }

  /**
   * Starts claimed jobs after recording them and a new claim key, because the same key would return the same claims.
   * Rejects jobs that cannot be recorded or were claimed before.
   */
  accept(claims: readonly ClaimedJob[]): void {
    const { deps } = this.#options
    const newClaims = claims.filter(({ jobId }) => !this.#jobs.has(jobId))
    const isNewById = new Map(newClaims.map(({ jobId }) => [jobId, !deps.journal.has(jobId)]))
    const problem = this.#record(newClaims.filter(({ jobId }) => isNewById.get(jobId)).map(startedRecord))
    for (const claim of newClaims) {
      const run = this.#newRun(claim.jobId)
      const reason = isNewById.get(claim.jobId) ? problem : 'this relay has already claimed it'
      this.#add(claim.jobId, run, reason === undefined ? run.runClaimed(claim) : run.reject(claim, reason))
    }
  }

  /**
   * Reports jobs as interrupted that a former process claimed but did not record. Their scripts have not started.
   */
  concludeClaims(claims: readonly ClaimedJob[]): void {
    const entries = claims.filter(({ jobId }) => !this.#jobs.has(jobId)).map(startedRecord)
    const problem = this.#record(entries)
    if (problem !== undefined) warn(`Claims of the former process may be reported again, because ${problem}.`)
    for (const entry of entries) this.resume(entry)
  }

  // Records jobs and a new claim key. Returns the problem if the journal cannot be written.
  #record(records: JournalRecord[]): string | undefined {
    try {
      this.#options.deps.journal.append(...records, keyRecord(randomUUID()))
      return undefined
    } catch (error) {
      return `the journal cannot be written: ${messageOf(error)}`
    }
  }

  /** Continues a job that an earlier run of the relay left unfinished. */
  resume(entry: UnfinishedEntry): void {
    const run = { isLeased: entry.state !== 'claiming', usesSlot: false, stop: () => {} }
    this.#add(entry.jobId, run, recover(entry, this.#options.deps))
  }

  /** Returns false if the script of the job has ended, or the job is unknown. */
  cancel(jobId: string): boolean {
    const run = this.#jobs.get(jobId)?.run
    if (run === undefined || !run.usesSlot) return false
    run.stop('cancelled', 'graceful')
    return true
  }

  /**
   * Accepts no more jobs and stops all scripts. Resolves when the results are reported, or can no longer be reported.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    const jobs = [...this.#jobs.values()]
    for (const job of jobs) job.run.stop('interrupted', 'graceful')
    await Promise.all(jobs.map((job) => job.completion))
  }

  #newRun(jobId: string): JobRun {
    return new JobRun(jobId, this.#options.deps, () => {
      if (this.#unusedSlots > 0) this.#options.onSlotFreed()
    })
  }

  #add(jobId: string, run: ActiveJob['run'], work: Promise<void>): void {
    const completion = work
      .catch((error: unknown) => {
        // If the relay is stopping, the job is in the journal and is reported at the next start.
        if (!this.#options.deps.signal.aborted) warn(`Job ${jobId} could not be completed: ${messageOf(error)}`)
      })
      .finally(() => {
        const unusedSlots = this.#unusedSlots
        this.#jobs.delete(jobId)
        if (!run.isLeased) this.#rejectedIds.add(jobId)
        if (this.#unusedSlots > unusedSlots) this.#options.onSlotFreed()
        this.#options.onJobDone()
      })
    this.#jobs.set(jobId, { run, completion })
  }
}

function startedRecord({ jobId, leaseId }: ClaimedJob): UnfinishedEntry & { state: 'started' } {
  return { state: 'started', jobId, leaseId, leaders: [] }
}
