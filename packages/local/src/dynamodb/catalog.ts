import type { CommitLog } from './commit-log.ts'
import type { Database } from './database.ts'
import { dynamoError } from './errors.ts'
import { recordsUnder, tableRecord, TABLES } from './keys.ts'
import type { StoredTable } from './types.ts'

/** The tables, held in memory and mirrored to the store. */
export class Catalog {
  readonly #commits: CommitLog
  readonly #tables = new Map<string, StoredTable>()

  constructor(commits: CommitLog) {
    this.#commits = commits
  }

  static async load(database: Database, commits: CommitLog): Promise<Catalog> {
    const catalog = new Catalog(commits)
    for (const stored of (await database.values(recordsUnder(TABLES)).all()) as StoredTable[]) {
      catalog.#tables.set(stored.description.TableName, stored)
    }
    return catalog
  }

  all(): StoredTable[] {
    return [...this.#tables.values()]
  }

  names(): string[] {
    return [...this.#tables.keys()].sort()
  }

  find(tableName: string): StoredTable | undefined {
    return this.#tables.get(tableName)
  }

  /** A table in any state, for the operations on tables. */
  existing(tableName: string): StoredTable {
    const stored = this.#tables.get(tableName)
    if (stored) return stored
    throw dynamoError('ResourceNotFoundException', `Requested resource not found: Table: ${tableName} not found`)
  }

  /** A table that takes items, for everything else. */
  serving(tableName: string): StoredTable {
    const stored = this.#tables.get(tableName)
    if (stored && stored.description.TableStatus !== 'DELETING') return stored
    throw dynamoError('ResourceNotFoundException', 'Requested resource not found')
  }

  save(stored: StoredTable): Promise<void> {
    this.#tables.set(stored.description.TableName, stored)
    return this.#commits.commit(new Map([[tableRecord(stored.description.TableName), stored]]))
  }

  remove(tableName: string): Promise<void> {
    this.#tables.delete(tableName)
    return this.#commits.commit(new Map([[tableRecord(tableName), null]]))
  }
}
