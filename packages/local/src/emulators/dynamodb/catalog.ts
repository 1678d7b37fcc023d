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
    for (const storedTable of tables) {
      catalog.#tables.set(storedTable.description.TableName, storedTable)
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
    const storedTable = this.#tables.get(tableName)
    if (storedTable) return storedTable
    throw dynamoError('ResourceNotFoundException', `Requested resource not found: Table: ${tableName} not found`)
  }

  /** Returns a table that accepts items. Throws `ResourceNotFoundException`, also while the table is being deleted. */
  requireServingTable(tableName: string): StoredTable {
    const storedTable = this.#tables.get(tableName)
    if (storedTable && storedTable.description.TableStatus !== 'DELETING') return storedTable
    throw dynamoError('ResourceNotFoundException', 'Requested resource not found')
  }

  /** The change takes effect in memory immediately, and is on the disk when the call resolves. */
  update(tableName: string, change: (description: TableDescription) => Partial<StoredTable>): Promise<void> {
    const storedTable = this.requireTable(tableName)
    const description = structuredClone(storedTable.description)
    return this.save({ ...storedTable, description, ...change(description) })
  }

  save(storedTable: StoredTable): Promise<void> {
    this.#tables.set(storedTable.description.TableName, storedTable)
    return this.#commits.commit(new Map([[tableRecord(storedTable.description.TableName), storedTable]]))
  }

  remove(tableName: string): Promise<void> {
    this.#tables.delete(tableName)
    return this.#commits.commit(new Map([[tableRecord(tableName), null]]))
  }
}
