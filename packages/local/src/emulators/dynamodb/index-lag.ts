import type { Changes, CommitLog } from './commit-log.ts'
import type { Database } from './database.ts'
import type { Faults } from './faults.ts'
import { LAGGED, lagRecord, recordsUnder } from './keys.ts'

/** Changes of index rows: a row to put, or null to delete, under its key. */
export type RowChanges = [key: string, row: unknown][]

interface Waiting {
  record: string
  writtenAtMs: number
  rows: RowChanges
}

/**
 * Holds the rows of global indexes back for the lag that is set. They are stored with the item they belong to and
 * applied in the order of the writes, so a reader of the index sees the table as it was; none is lost by a kill.
 */
export class IndexLag {
  readonly #commits: CommitLog
  readonly #faults: Faults
  readonly #report: (error: unknown) => void
  #waiting: Waiting[] = []
  #sequence = 0
  #timer: NodeJS.Timeout | undefined

  constructor(commits: CommitLog, faults: Faults, report: (error: unknown) => void) {
    this.#commits = commits
    this.#faults = faults
    this.#report = report
    faults.onChange(() => this.#arm())
  }

  get #lagMs(): number {
    return this.#faults.read().indexLagMs
  }

  /** Applies what an earlier process left waiting. */
  async replay(database: Database): Promise<void> {
    const left: [string, RowChanges][] = await database.iterator(recordsUnder(LAGGED)).all()
    if (left.length > 0) await this.#apply(left.map(([record, rows]) => ({ record, rows })))
  }

  /** Adds the rows to the changes of their item: at once, or to wait for the lag. */
  stage(changes: Changes, rows: RowChanges): void {
    if (this.#lagMs === 0 && this.#waiting.length === 0) {
      for (const [key, row] of rows) changes.set(key, row)
      return
    }
    const record = lagRecord(this.#sequence++)
    changes.set(record, rows)
    this.#waiting.push({ record, rows, writtenAtMs: performance.now() })
    if (this.#waiting.length === 1) this.#arm()
  }

  /** Applies everything that waits, now. */
  async drain(): Promise<void> {
    await this.#apply(this.#waiting.splice(0))
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /** Sets the timer for the oldest row by the lag of now. */
  #arm(): void {
    clearTimeout(this.#timer)
    const oldest = this.#waiting[0]
    if (!oldest) return
    const delayMs = Math.max(0, Math.ceil(oldest.writtenAtMs + this.#lagMs - performance.now()))
    this.#timer = setTimeout(() => this.#applyDue(), delayMs).unref()
  }

  #applyDue(): void {
    const newestDueMs = performance.now() - this.#lagMs
    const firstLater = this.#waiting.findIndex(({ writtenAtMs }) => writtenAtMs > newestDueMs)
    const due = this.#waiting.splice(0, firstLater === -1 ? this.#waiting.length : firstLater)
    this.#apply(due).catch(this.#report)
    this.#arm()
  }

  #apply(waiting: Pick<Waiting, 'record' | 'rows'>[]): Promise<void> {
    const changes: Changes = new Map()
    for (const { record, rows } of waiting) {
      for (const [key, row] of rows) changes.set(key, row)
      changes.set(record, null)
    }
    return changes.size > 0 ? this.#commits.commit(changes) : this.#commits.settled()
  }
}
