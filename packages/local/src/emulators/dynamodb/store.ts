import { Catalog } from './catalog.ts'
import { CommitLog } from './commit-log.ts'
import type { Changes } from './commit-log.ts'
import { openDatabase } from './database.ts'
import type { Database } from './database.ts'
import type { DynamoDbHooks, IndexWriter } from '../hooks.ts'
import { TableWork } from './table-work.ts'

export interface Store {
  /** Records on the disk; reads return these. */
  database: Database
  /** Records on the disk and pending records; writes are based on these. */
  commits: CommitLog
  catalog: Catalog
  indexes: IndexWriter
  work: TableWork
  hooks: DynamoDbHooks
  report: (error: unknown) => void
}

/** Opens the store, and continues table work that an earlier process did not complete. */
export async function openStore(
  dataDir: string | undefined,
  hooks: DynamoDbHooks,
  report: (error: unknown) => void,
): Promise<Store> {
  const database = await openDatabase(dataDir)
  const commits = new CommitLog(database)
  const indexes = (await hooks.openIndexes?.(database, commits, report)) ?? writeWithItems(commits)
  const catalog = await Catalog.load(database, commits)
  const store: Store = { database, commits, catalog, indexes, work: new TableWork(), hooks, report }
  for (const tableName of catalog.names()) store.work.start(store, tableName)
  return store
}

export async function closeStore(store: Store): Promise<void> {
  store.indexes.close()
  await store.work.stop()
  await store.commits.untilSettled()
  await store.database.close()
}

/** Writes index rows in the batch of their item. */
const writeWithItems = (commits: CommitLog): IndexWriter => ({
  stage: (changes, entries) => entries.forEach(([key, value]) => changes.set(key, value)),
  drain: () => commits.untilSettled(),
  close: () => undefined,
})

/** Writes the changes to the disk. Without changes, waits until all values that `latest` returned are on the disk. */
export function finish(store: Store, changes: Changes): Promise<void> {
  return changes.size > 0 ? store.commits.commit(changes) : store.commits.untilSettled()
}
