import { JobRun } from './job-run.ts'
import type { Unfinished } from './journal-entry.ts'
import { messageOf, warn } from './log.ts'
import { recover } from './recovery.ts'
import type { JobDeps } from './job-deps.ts'

type Member = { run: Pick<JobRun, 'isLeased' | 'stop'>; ended: Promise<void> }

export type WorkerPoolDeps = { resources: JobDeps; slots: number; onSlotFreed: () => void }

/** The jobs in progress; a job holds its slot until its end is acknowledged. */
export class WorkerPool {
  readonly #parts: WorkerPoolDeps
  readonly #members = new Map<string, Member>()
  readonly #refused = new Set<string>()
  #closed = false

  constructor(parts: WorkerPoolDeps) {
    this.#parts = parts
  }

  get freeSlots(): number {
    return this.#closed ? 0 : Math.max(0, this.#parts.slots - this.#members.size)
  }

  /** The jobs that the server has leased to this relay. */
  get running(): string[] {
    return [...this.#members].filter(([, member]) => member.run.isLeased).map(([jobId]) => jobId)
  }

  /** Starts a job if a slot is free. Returns false if it did not, or if the job was claimed or rejected before. */
  offer(jobId: string): boolean {
    if (this.freeSlots === 0 || this.#members.has(jobId)) return false
    const isReplay = this.#parts.resources.journal.has(jobId)
    const run = new JobRun(jobId, this.#parts.resources)
    this.#add(jobId, run, run.run())
    return !isReplay && !this.#refused.has(jobId)
  }

  /** Continues a job that an earlier run of the relay left unfinished. */
  resume(entry: Unfinished): void {
    this.#add(
      entry.jobId,
      { isLeased: entry.state !== 'claiming', stop: () => {} },
      recover(entry, this.#parts.resources),
    )
  }

  /** Stops one job on behalf of the server. */
  cancel(jobId: string): void {
    this.#members.get(jobId)?.run.stop('cancelled', 'gently')
  }

  /** Accepts no more jobs and ends every script at once; resolves when all are reported, or can no longer be. */
  async close(): Promise<void> {
    this.#closed = true
    const members = [...this.#members.values()]
    for (const member of members) member.run.stop('interrupted', 'now')
    await Promise.all(members.map((member) => member.ended))
  }

  #add(jobId: string, run: Member['run'], work: Promise<void>): void {
    const ended = work
      .catch((error: unknown) => {
        // Jobs interrupted by the end of the relay are in the journal for its next start.
        if (!this.#parts.resources.signal.aborted) warn(`Job ${jobId} could not be completed: ${messageOf(error)}`)
      })
      .finally(() => {
        this.#members.delete(jobId)
        if (!run.isLeased) this.#refused.add(jobId)
        this.#parts.onSlotFreed()
      })
    this.#members.set(jobId, { run, ended })
  }
}
