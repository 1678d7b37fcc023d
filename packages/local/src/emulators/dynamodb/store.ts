import { Catalog } from './catalog.ts'
import { CommitLog } from './commit-log.ts'
import type { Changes } from './commit-log.ts'
import { openDatabase } from './database.ts'
import type { Database } from './database.ts'
import type { Faults } from './faults.ts'
import { IndexLag } from './index-lag.ts'
import { TableWork } from './table-work.ts'

/** What the operations work on. */
export interface Store {
  /** What is on the disk: all that reads may show. */
  database: Database
  /** What is there or on its way: what a write is decided by. */
  commits: CommitLog
  catalog: Catalog
  lag: IndexLag
  work: TableWork
  faults: Faults
  /** Hears of what goes wrong outside a request. */
  report: (error: unknown) => void
}

/** Opens the store and goes on with what an earlier process left unfinished. */
export async function openStore(
  dataDir: string | undefined,
  faults: Faults,
  report: (error: unknown) => void,
): Promise<Store> {
  const database = await openDatabase(dataDir)
  const commits = new CommitLog(database)
  const lag = new IndexLag(commits, faults, report)
  await lag.replay(database)
  const catalog = await Catalog.load(database, commits)
  const store: Store = { database, commits, catalog, lag, work: new TableWork(), faults, report }
  for (const tableName of catalog.names()) store.work.start(store, tableName)
  return store
}

export async function closeStore(store: Store): Promise<void> {
  store.lag.stop()
  await store.work.stop()
  await store.commits.settled()
  await store.database.close()
}

/** Writes the changes when there are any, and waits for whatever the decision about them was based on. */
export function finish(store: Store, changes: Changes): Promise<void> {
  return changes.size > 0 ? store.commits.commit(changes) : store.commits.settled()
}
