import { type Database, reopen } from './database.ts'
import { isDiskFull, storageFullError } from './errors.ts'

/** Key → value to put, or null to delete. The changes are written together. */
export type Changes = Map<string, unknown>

class Group {
  readonly changes: Changes = new Map()
  readonly durability = Promise.withResolvers<void>()

  constructor() {
    this.durability.promise.catch(() => {})
  }
}

/**
 * Group commit: requests that arrive while a synced batch is written form the next batch, and share its disk write.
 * Batches are written in order, so no batch survives a crash without the earlier ones.
 */
export class CommitLog {
  readonly #database: Database
  #pendingGroup: Group | undefined
  #groupInFlight: Group | undefined
  #hasFailed = false
  batchCount = 0

  constructor(database: Database) {
    this.#database = database
  }

  /** Returns the newest value of a record, written or pending; undefined if the record does not exist. */
  latestValue(key: string): any {
    for (const group of [this.#pendingGroup, this.#groupInFlight]) {
      const value = group?.changes.get(key)
      if (value !== undefined) return value ?? undefined
    }
    return this.#database.getSync(key)
  }

  /** Writes all changes or none. Resolves when they are on the disk. */
  commit(changes: Changes): Promise<void> {
    const group = this.#joinableGroup()
    for (const [key, value] of changes) group.changes.set(key, value)
    return group.durability.promise
  }

  /** Resolves when all values that `latestValue` returned are on the disk. */
  untilSettled(): Promise<void> {
    return (this.#pendingGroup ?? this.#groupInFlight)?.durability.promise ?? Promise.resolve()
  }

  /**
   * If no batch is being written, writing starts at the end of the event-loop turn, so that other requests of the turn
   * can join the group.
   */
  #joinableGroup(): Group {
    if (!this.#pendingGroup) {
      this.#pendingGroup = new Group()
      if (!this.#groupInFlight) setImmediate(() => void this.#writeGroups())
    }
    return this.#pendingGroup
  }

  async #writeGroups(): Promise<void> {
    while (this.#pendingGroup && !this.#groupInFlight) {
      const group = this.#pendingGroup
      this.#groupInFlight = group
      this.#pendingGroup = undefined
      try {
        if (this.#hasFailed) await reopen(this.#database)
        this.#hasFailed = false
        await this.#database.batch(batchOf(group.changes), { sync: true })
        this.batchCount += 1
        this.#groupInFlight = undefined
        group.durability.resolve()
      } catch (error) {
        this.#hasFailed = true
        this.#fail(group, isDiskFull(error) ? storageFullError() : error)
      }
    }
  }

  /** The pending group may depend on values that were not written, so it fails too. */
  #fail(group: Group, error: unknown): void {
    const follower: Group | undefined = this.#pendingGroup
    this.#pendingGroup = undefined
    this.#groupInFlight = undefined
    group.durability.reject(error)
    follower?.durability.reject(error)
  }
}

function batchOf(changes: Changes) {
  return Array.from(changes, ([key, value]) =>
    value === null ? { type: 'del' as const, key } : { type: 'put' as const, key, value },
  )
}
