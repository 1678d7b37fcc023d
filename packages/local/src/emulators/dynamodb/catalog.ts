import type { CommitLog } from './commit-log.ts'
import type { Database } from './database.ts'
import { dynamoError } from './errors.ts'
import { recordsUnder, tableRecord, TABLE_PREFIX } from './keys.ts'
import type { StoredTable, TableDescription } from './types.ts'

/** Holds the definitions of all tables in memory, and writes every change to the store. */
export class Catalog {
  readonly #commits: CommitLog
  readonly #tables = new Map<string, StoredTable>()

  constructor(commits: CommitLog) {
    this.#commits = commits
  }

  static async load(database: Database, commits: CommitLog): Promise<Catalog> {
    const catalog = new Catalog(commits)
    const tables: StoredTable[] = await database.values(recordsUnder(TABLE_PREFIX)).all()
    for (const stored of tables) {
      catalog.#tables.set(stored.description.TableName, stored)
    }
    return catalog
  }

  names(): string[] {
    return [...this.#tables.keys()].toSorted()
  }

  find(tableName: string): StoredTable | undefined {
    return this.#tables.get(tableName)
  }

  /** Returns a table in any status. Throws `ResourceNotFoundException` if the table does not exist. */
  requireTable(tableName: string): StoredTable {
    const stored = this.#tables.get(tableName)
    if (stored) return stored
    throw dynamoError('ResourceNotFoundException', `Requested resource not found: Table: ${tableName} not found`)
  }

  /** Returns a table that accepts items. Throws `ResourceNotFoundException`, also while the table is being deleted. */
  requireServingTable(tableName: string): StoredTable {
    const stored = this.#tables.get(tableName)
    if (stored && stored.description.TableStatus !== 'DELETING') return stored
    throw dynamoError('ResourceNotFoundException', 'Requested resource not found')
  }

  /** The change takes effect in memory immediately, and is on the disk when the call resolves. */
  update(tableName: string, change: (description: TableDescription) => Partial<StoredTable>): Promise<void> {
    const stored = this.requireTable(tableName)
    const description = structuredClone(stored.description)
    return this.save({ ...stored, description, ...change(description) })
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
