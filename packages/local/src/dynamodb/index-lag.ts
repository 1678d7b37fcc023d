import type { Changes, CommitLog } from './commit-log.ts'
import type { Database } from './database.ts'
import type { Faults } from './faults.ts'
import { LAGGED, lagRecord, recordsUnder } from './keys.ts'

/** Changes of index rows: a row to put, or null to delete, under its key. */
export type RowChanges = [key: string, row: unknown][]

interface Waiting {
  record: string
  dueAtMs: number
  rows: RowChanges
}

/**
 * Holds the rows of global indexes back for the lag that is set. They are stored with the item they belong to and
 * applied in the order of the writes, so a reader of the index sees the table as it was; none is lost by a kill.
 */
export class IndexLag {
  readonly #commits: CommitLog
  readonly #faults: Faults
  #waiting: Waiting[] = []
  #sequence = 0
  #timer: NodeJS.Timeout | undefined

  constructor(commits: CommitLog, faults: Faults) {
    this.#commits = commits
    this.#faults = faults
    faults.onChange(() => {
      if (this.#lagMs === 0) this.#apply(this.#waiting.length)
    })
  }

  get #lagMs(): number {
    return this.#faults.read().indexLagMs
  }

  /** Applies what an earlier process left waiting. */
  async replay(database: Database): Promise<void> {
    const left = (await database.iterator(recordsUnder(LAGGED)).all()) as [string, RowChanges][]
    const changes: Changes = new Map()
    for (const [record, rows] of left) {
      for (const [key, row] of rows) changes.set(key, row)
      changes.set(record, null)
    }
    if (left.length > 0) await this.#commits.commit(changes)
  }

  /** Adds the rows to the changes of their item: at once, or to wait for the lag. */
  stage(changes: Changes, rows: RowChanges): void {
    const lagMs = this.#lagMs
    if (lagMs === 0 && this.#waiting.length === 0) {
      for (const [key, row] of rows) changes.set(key, row)
      return
    }
    const record = lagRecord(this.#sequence++)
    changes.set(record, rows)
    this.#waiting.push({ record, dueAtMs: performance.now() + lagMs, rows })
    this.#arm()
  }

  /** Applies everything that waits, now. */
  async drain(): Promise<void> {
    await this.#apply(this.#waiting.length)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #arm(): void {
    const head = this.#waiting[0]
    if (!head || this.#timer) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      const now = performance.now()
      const due = this.#waiting.findIndex((waiting) => waiting.dueAtMs > now)
      this.#apply(due === -1 ? this.#waiting.length : due)
      this.#arm()
    }, head.dueAtMs - performance.now())
    this.#timer.unref()
  }

  async #apply(count: number): Promise<void> {
    if (count === 0) return this.#commits.settled()
    const changes: Changes = new Map()
    for (const { record, rows } of this.#waiting.splice(0, count)) {
      for (const [key, row] of rows) changes.set(key, row)
      changes.set(record, null)
    }
    await this.#commits.commit(changes)
  }
}
