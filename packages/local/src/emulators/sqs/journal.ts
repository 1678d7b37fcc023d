import type { Persistence, Store } from './fauxqs.ts'

export interface Journal extends Persistence {
  /**
   * Stores all changes of `work` together, or none. Stored changes survive a crash of the process and, with `isSynced`,
   * a power failure.
   */
  atomically<Result>(work: () => Result, isSynced: boolean): Result
  /** Loads the stored queues into an empty store. */
  restore(store: Store): void
}

/** Opens the journal of fauxqs, and replaces an SQL statement that fails. */
export function openJournal(Base: new (dataDir: string) => Persistence, dataDir: string): Journal {
  class RepairedJournal extends Base {
    readonly #release = this['db'].prepare(
      'UPDATE sqs_messages SET receipt_handle = NULL, visibility_deadline = NULL WHERE message_id = ?',
    )
    /** The original sets the receive count to NULL when visibility becomes 0, which its schema rejects. */
    override updateMessageReady(messageId: string) {
      this.#release.run(messageId)
    }

    atomically<Result>(work: () => Result, isSynced: boolean): Result {
      this['db'].exec(isSynced ? 'PRAGMA synchronous = FULL' : 'PRAGMA synchronous = NORMAL')
      let result!: Result
      this['transaction'](() => {
        result = work()
      })
      return result
    }

    restore(store: Store) {
      this['loadSqsQueues'](store)
      store.persistence = this
      for (const queue of store.allQueues()) queue.persistence = this
    }
  }
  return new RepairedJournal(dataDir)
}
