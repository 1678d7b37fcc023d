import { JobRun } from './job-run.ts'
import type { Unfinished } from './journal-entry.ts'
import { messageOf, warn } from './log.ts'
import { recover } from './recovery.ts'
import type { JobDeps } from './job-deps.ts'
import type { Storage } from './storage.ts'

type ActiveJob = { run: Pick<JobRun, 'isLeased' | 'stop'>; ended: Promise<void> }

export type WorkerPoolOptions = { deps: JobDeps; slots: number; storage: Storage; onSlotFreed: () => void }

/** The jobs in progress. A job occupies its slot until the server has acknowledged its result. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #jobs = new Map<string, ActiveJob>()
  readonly #rejected = new Set<string>()
  #closed = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  get freeSlots(): number {
    const { slots: allSlots, deps, storage } = this.#options
    const slots = Math.max(0, allSlots - this.#jobs.size)
    return this.#closed || slots === 0 || deps.statementKeys.isOutdated || !storage.isWritable ? 0 : slots
  }

  /** Ids of the jobs that the server has leased to this relay. */
  get running(): string[] {
    return [...this.#jobs].filter(([, job]) => job.run.isLeased).map(([jobId]) => jobId)
  }

  /**
   * Starts a job if a slot is free. Returns false if it was not started, or if the relay claimed or rejected it before.
   */
  offer(jobId: string): boolean {
    if (this.freeSlots === 0 || this.#jobs.has(jobId)) return false
    const isReplay = this.#options.deps.journal.has(jobId)
    const run = new JobRun(jobId, this.#options.deps)
    this.#add(jobId, run, run.run())
    return !isReplay && !this.#rejected.has(jobId)
  }

  /** Continues a job that an earlier run of the relay left unfinished. */
  resume(entry: Unfinished): void {
    this.#add(entry.jobId, { isLeased: entry.state !== 'claiming', stop: () => {} }, recover(entry, this.#options.deps))
  }

  /** Stops a job because the server has cancelled it. */
  cancel(jobId: string): void {
    this.#jobs.get(jobId)?.run.stop('cancelled', 'graceful')
  }

  /**
   * Accepts no more jobs and stops all scripts. Resolves when the results are reported, or can no longer be reported.
   */
  async close(): Promise<void> {
    this.#closed = true
    const jobs = [...this.#jobs.values()]
    for (const job of jobs) job.run.stop('interrupted', 'graceful')
    await Promise.all(jobs.map((job) => job.ended))
  }

  #add(jobId: string, run: ActiveJob['run'], work: Promise<void>): void {
    const ended = work
      .catch((error: unknown) => {
        // If the relay is stopping, the job is in the journal and is reported at the next start.
        if (!this.#options.deps.signal.aborted) warn(`Job ${jobId} could not be completed: ${messageOf(error)}`)
      })
      .finally(() => {
        this.#jobs.delete(jobId)
        if (!run.isLeased) this.#rejected.add(jobId)
        this.#options.onSlotFreed()
      })
    this.#jobs.set(jobId, { run, ended })
  }
}
