import type { Changes } from './commit-log.ts'
import { stageExpiry } from './expiry-records.ts'
import { allIndexesPrefix, itemPrefix, recordsUnder } from './keys.ts'
import type { Store } from './store.ts'
import type { Item, StoredTable } from './types.ts'

const RECORDS_PER_BATCH = 250

type Step = (store: Store, storedTable: StoredTable, signal: AbortSignal) => Promise<void>

/**
 * Runs the slow part of table changes in the background. The stored status of the table or its time to live records the
 * remaining work, so that the work continues after a crash.
 */
export class TableWork {
  readonly #stopController = new AbortController()
  readonly #runs = new Map<string, Promise<void>>()

  start(store: Store, tableName: string): void {
    const earlierRun = this.#runs.get(tableName) ?? Promise.resolve()
    this.#runs.set(tableName, earlierRun.then(() => this.#run(store, tableName)).catch(store.report))
  }

  /** Stops after the current batch. */
  async stop(): Promise<void> {
    this.#stopController.abort()
    await Promise.all(this.#runs.values())
  }

  async #run(store: Store, tableName: string): Promise<void> {
    const { signal } = this.#stopController
    for (;;) {
      const storedTable = store.catalog.find(tableName)
      const step = storedTable && nextStep(storedTable)
      if (!step || signal.aborted) return
      await step(store, storedTable, signal)
    }
  }
}

function nextStep({ description, timeToLive }: StoredTable): Step | undefined {
  if (description.TableStatus === 'DELETING') return dropTable
  if (timeToLive?.status === 'ENABLING') return stageExpiries
  return undefined
}

async function dropTable(store: Store, { description }: StoredTable, signal: AbortSignal): Promise<void> {
  await store.indexes.drain()
  for (const prefix of [allIndexesPrefix(description.TableId), itemPrefix(description.TableId)]) {
    await deleteRecords(store, prefix, signal)
  }
  if (!signal.aborted) await store.catalog.remove(description.TableName)
}

/** Writes the expiry record of every item, from its newest state. Concurrent writes add their own records. */
async function stageExpiries(
  store: Store,
  { description, timeToLive }: StoredTable,
  signal: AbortSignal,
): Promise<void> {
  const { TableName, TableId } = description
  await forEachBatch(store, itemPrefix(TableId), signal, (record, changes) => {
    const item: Item | undefined = store.commits.latestValue(record)
    const itemKey = record.slice(itemPrefix(TableId).length)
    if (item) stageExpiry(changes, store.catalog.requireTable(TableName), itemKey, undefined, item)
  })
  if (signal.aborted || timeToLive === undefined) return
  await store.catalog.update(TableName, () => ({ timeToLive: { ...timeToLive, status: 'ENABLED' } }))
}

function deleteRecords(store: Store, prefix: string, signal: AbortSignal): Promise<void> {
  return forEachBatch(store, prefix, signal, (record, changes) => changes.set(record, null))
}

async function forEachBatch(
  store: Store,
  prefix: string,
  signal: AbortSignal,
  visit: (record: string, changes: Changes) => void,
): Promise<void> {
  await using records = store.database.keys(recordsUnder(prefix))
  while (!signal.aborted) {
    const batch = await records.nextv(RECORDS_PER_BATCH)
    if (batch.length === 0) return
    const changes: Changes = new Map()
    for (const record of batch) visit(record, changes)
    if (changes.size > 0) await store.commits.commit(changes)
  }
}
