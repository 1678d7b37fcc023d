import type { Persistence, Queue, Store } from './fauxqs.ts'

/** The durable copy of all queues. */
export interface Journal extends Persistence {
  /** Makes all changes of `work` durable together, or none. */
  atomically<Result>(work: () => Result): Result
  /** Fills an empty store with the stored queues. */
  restore(store: Store): void
}

/** Opens the journal in a folder, and replaces two statements of fauxqs that lose messages. */
export function openJournal(Base: new (dataDir: string) => Persistence, dataDir: string): Journal {
  class RepairedJournal extends Base {
    readonly #release = this['db'].prepare(
      'UPDATE sqs_messages SET receipt_handle = NULL, visibility_deadline = NULL WHERE message_id = ?',
    )
    readonly #upsertQueue = this['db'].prepare(`
      INSERT INTO sqs_queues (name, url, arn, attributes, tags, created_timestamp, last_modified_timestamp)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (name) DO UPDATE SET attributes = excluded.attributes, tags = excluded.tags`)

    /** The original sets the receive count to NULL when visibility becomes 0, which its schema rejects. */
    override updateMessageReady(messageId: string) {
      this.#release.run(messageId)
    }

    /** The original replaces the row on every change of tags, which deletes the queue's messages by cascade. */
    override insertQueue({ name, url, arn, createdTimestamp, lastModifiedTimestamp, ...queue }: Queue) {
      const attributes = JSON.stringify(queue.attributes)
      const tags = JSON.stringify(Object.fromEntries(queue.tags))
      this.#upsertQueue.run(name, url, arn, attributes, tags, createdTimestamp, lastModifiedTimestamp)
    }

    atomically<Result>(work: () => Result): Result {
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
