import { closeSync, fdatasync, openSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Persistence, Store } from './fauxqs.ts'

export interface Journal extends Persistence {
  /** Stores all changes of `work` together, or none. Stored changes survive a crash of the process. */
  atomically<Result>(work: () => Result): Result
  /** Resolves when the changes stored so far survive a power failure. */
  sync(): Promise<void>
  /** Loads the stored queues into an empty store. */
  restore(store: Store): void
}

const syncFile = promisify(fdatasync)

/** Opens the journal of fauxqs, and replaces an SQL statement that fails. */
export function openJournal(Base: new (dataDir: string) => Persistence, dataDir: string): Journal {
  class RepairedJournal extends Base {
    readonly #release = this['db'].prepare(
      'UPDATE sqs_messages SET receipt_handle = NULL, visibility_deadline = NULL WHERE message_id = ?',
    )
    /** SQLite's write-ahead log, which has the same file while the database is open. */
    readonly #log: number
    #lastSync = Promise.resolve()
    #nextSync: Promise<void> | undefined

    constructor() {
      super(dataDir)
      // SQLite would sync the log at each commit, which blocks this thread.
      this['db'].exec('PRAGMA synchronous = NORMAL')
      this.#log = openSync(join(dataDir, 'fauxqs.db-wal'), 'r+')
    }

    /** The original sets the receive count to NULL when visibility becomes 0, which its schema rejects. */
    override updateMessageReady(messageId: string) {
      this.#release.run(messageId)
    }

    atomically<Result>(work: () => Result): Result {
      let result!: Result
      this['transaction'](() => {
        result = work()
      })
      return result
    }

    /** Calls during a sync share the next one. */
    sync(): Promise<void> {
      this.#nextSync ??= this.#lastSync
        .catch(() => {})
        .then(() => {
          this.#nextSync = undefined
          this.#lastSync = syncFile(this.#log)
          return this.#lastSync
        })
      return this.#nextSync
    }

    override close() {
      super.close()
      closeSync(this.#log)
    }

    restore(store: Store) {
      this['loadSqsQueues'](store)
      store.persistence = this
      for (const queue of store.allQueues()) queue.persistence = this
    }
  }
  return new RepairedJournal()
}
