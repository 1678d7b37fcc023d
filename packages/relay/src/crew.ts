import { JobRun } from './job-run.ts'
import type { Unfinished } from './journal-entry.ts'
import { messageOf, warn } from './log.ts'
import { recover } from './recovery.ts'
import type { Resources } from './resources.ts'

type Member = { run: Pick<JobRun, 'isLeased' | 'stop'>; ended: Promise<void> }

/** The jobs under way; a job holds its slot until its end is acknowledged. */
export class Crew {
  readonly #resources: Resources
  readonly #slots: number
  readonly #onSlotFreed: () => void
  readonly #members = new Map<string, Member>()
  #closed = false

  constructor(resources: Resources, slots: number, onSlotFreed: () => void) {
    this.#resources = resources
    this.#slots = slots
    this.#onSlotFreed = onSlotFreed
  }

  get freeSlots(): number {
    return this.#closed ? 0 : Math.max(0, this.#slots - this.#members.size)
  }

  /** The jobs that the server has given to this relay. */
  get running(): string[] {
    return [...this.#members].filter(([, member]) => member.run.isLeased).map(([jobId]) => jobId)
  }

  /** Takes a job up if a slot is free. Answers whether that brings the work forward. */
  offer(jobId: string): boolean {
    if (this.freeSlots === 0 || this.#members.has(jobId)) return false
    const isReplay = this.#resources.journal.has(jobId)
    const run = new JobRun(jobId, this.#resources)
    this.#add(jobId, run, run.run())
    return !isReplay
  }

  /** Goes on with what an earlier run of the relay left unfinished. */
  resume(entry: Unfinished): void {
    this.#add(entry.jobId, { isLeased: entry.state !== 'claiming', stop: () => {} }, recover(entry, this.#resources))
  }

  /** Stops one job for the server. */
  cancel(jobId: string): void {
    this.#members.get(jobId)?.run.stop('cancelled', 'gently')
  }

  /** Takes nothing more and ends every script at once; returns when all is reported, or can no longer be. */
  async close(): Promise<void> {
    this.#closed = true
    const members = [...this.#members.values()]
    for (const member of members) member.run.stop('interrupted', 'now')
    await Promise.all(members.map((member) => member.ended))
  }

  #add(jobId: string, run: Member['run'], work: Promise<void>): void {
    const ended = work
      .catch((error: unknown) => {
        // What was cut short by the end of the relay is in the journal for its next start.
        if (!this.#resources.signal.aborted) warn(`Job ${jobId} is left as it is: ${messageOf(error)}`)
      })
      .finally(() => {
        this.#members.delete(jobId)
        this.#onSlotFreed()
      })
    this.#members.set(jobId, { run, ended })
  }
}
