import { type Database, reopen } from './database.ts'
import { isDiskFull, storageFull } from './errors.ts'

/** Key → value to put, or null to delete. The changes are written together. */
export type Changes = Map<string, unknown>

class Group {
  readonly changes: Changes = new Map()
  readonly durable = Promise.withResolvers<void>()

  constructor() {
    this.durable.promise.catch(() => {})
  }
}

/**
 * Group commit: requests that arrive while a synced batch is written form the next batch, and share its disk write.
 * Batches are written in order, so no batch survives a crash without the earlier ones.
 */
export class CommitLog {
  readonly #database: Database
  #open: Group | undefined
  #inFlight: Group | undefined
  #hasFailed = false
  batches = 0

  constructor(database: Database) {
    this.#database = database
  }

  /** The newest value of a record, written or pending; undefined if the record does not exist. */
  latest(key: string): any {
    for (const group of [this.#open, this.#inFlight]) {
      const value = group?.changes.get(key)
      if (value !== undefined) return value ?? undefined
    }
    return this.#database.getSync(key)
  }

  /** Adds all changes or none, and resolves when they are on the disk. */
  commit(changes: Changes): Promise<void> {
    const group = this.#openGroup()
    for (const [key, value] of changes) group.changes.set(key, value)
    return group.durable.promise
  }

  /** Resolves when all values that `latest` returned are on the disk. */
  settled(): Promise<void> {
    return (this.#open ?? this.#inFlight)?.durable.promise ?? Promise.resolve()
  }

  /** Writing starts at the end of the event-loop turn, so that other requests of the turn can join the group. */
  #openGroup(): Group {
    if (!this.#open) {
      this.#open = new Group()
      if (!this.#inFlight) setImmediate(() => void this.#writeGroups())
    }
    return this.#open
  }

  async #writeGroups(): Promise<void> {
    while (this.#open && !this.#inFlight) {
      const group = this.#open
      this.#inFlight = group
      this.#open = undefined
      try {
        if (this.#hasFailed) await reopen(this.#database)
        this.#hasFailed = false
        await this.#database.batch(batchOf(group.changes), { sync: true })
        this.batches += 1
        this.#inFlight = undefined
        group.durable.resolve()
      } catch (error) {
        this.#hasFailed = true
        this.#fail(group, isDiskFull(error) ? storageFull() : error)
      }
    }
  }

  /** The open group was computed from values that were not written, so it fails too. */
  #fail(group: Group, error: unknown): void {
    const follower: Group | undefined = this.#open
    this.#open = undefined
    this.#inFlight = undefined
    group.durable.reject(error)
    follower?.durable.reject(error)
  }
}

function batchOf(changes: Changes) {
  return Array.from(changes, ([key, value]) =>
    value === null ? { type: 'del' as const, key } : { type: 'put' as const, key, value },
  )
}
