import type { Changes, CommitLog } from '@platform/local/emulators/dynamodb/commit-log'
import type { Database } from '@platform/local/emulators/dynamodb/database'
import { recordsUnder } from '@platform/local/emulators/dynamodb/keys'
import type { IndexChanges, IndexWriter } from '@platform/local/emulators/hooks'

const prefix = 'lag~'
const recordOf = (sequence: number) => prefix + String(sequence).padStart(15, '0')

interface Pending {
  record: string
  writtenAtMs: number
  entries: IndexChanges
}

/**
 * Delays the entries of global indexes. Entries are stored in the batch of their item and written in order, so a reader
 * of an index sees an earlier state of the table, and a kill loses no entry.
 */
export class IndexLag implements IndexWriter {
  readonly #commits: CommitLog
  readonly #lagMs: () => number
  readonly #report: (error: unknown) => void
  #pending: Pending[] = []
  #sequence = 0
  #timer: NodeJS.Timeout | undefined

  constructor(commits: CommitLog, lagMs: () => number, report: (error: unknown) => void) {
    this.#commits = commits
    this.#lagMs = lagMs
    this.#report = report
  }

  async replay(database: Database): Promise<void> {
    const entries: [string, IndexChanges][] = await database.iterator(recordsUnder(prefix)).all()
    if (entries.length > 0) await this.#write(entries.map(([record, entries]) => ({ record, entries })))
  }

  stage(changes: Changes, entries: IndexChanges): void {
    if (this.#lagMs() === 0 && this.#pending.length === 0) {
      for (const [key, value] of entries) changes.set(key, value)
      return
    }
    const record = recordOf(this.#sequence++)
    changes.set(record, entries)
    this.#pending.push({ record, entries, writtenAtMs: performance.now() })
    if (this.#pending.length === 1) this.schedule()
  }

  async drain(): Promise<void> {
    await this.#write(this.#pending.splice(0))
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** Sets the timer for the oldest entry. Call it when the lag changes. */
  schedule(): void {
    clearTimeout(this.#timer)
    const oldestEntry = this.#pending[0]
    if (!oldestEntry) return
    const delayMs = Math.max(0, Math.ceil(oldestEntry.writtenAtMs + this.#lagMs() - performance.now()))
    this.#timer = setTimeout(() => this.#writeDue(), delayMs).unref()
  }

  #writeDue(): void {
    const newestDueMs = performance.now() - this.#lagMs()
    const firstLater = this.#pending.findIndex(({ writtenAtMs }) => writtenAtMs > newestDueMs)
    const dueEntries = this.#pending.splice(0, firstLater === -1 ? this.#pending.length : firstLater)
    this.#write(dueEntries).catch(this.#report)
    this.schedule()
  }

  #write(pending: Pick<Pending, 'record' | 'entries'>[]): Promise<void> {
    const changes: Changes = new Map()
    for (const { record, entries } of pending) {
      for (const [key, value] of entries) changes.set(key, value)
      changes.set(record, null)
    }
    return changes.size > 0 ? this.#commits.commit(changes) : this.#commits.untilSettled()
  }
}
