import type { Changes } from './commit-log.ts'
import { allIndexesPrefix, indexPrefix, itemPrefix, recordsUnder } from './keys.ts'
import { stageWrite, writeOf } from './staging.ts'
import type { Store } from './store.ts'
import type { Item, SecondaryIndex, StoredTable } from './types.ts'

const RECORDS_A_BATCH = 250

type Step = (store: Store, stored: StoredTable, signal: AbortSignal) => Promise<void>

/**
 * The long part of a table change, in the background. The table's state records the remaining work, so it continues
 * after a kill.
 */
export class TableWork {
  readonly #stopping = new AbortController()
  readonly #running = new Map<string, Promise<void>>()

  start(store: Store, tableName: string): void {
    const earlier = this.#running.get(tableName) ?? Promise.resolve()
    this.#running.set(tableName, earlier.then(() => this.#run(store, tableName)).catch(store.report))
  }

  /** Stops between two batches. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all(this.#running.values())
  }

  async #run(store: Store, tableName: string): Promise<void> {
    const { signal } = this.#stopping
    for (;;) {
      const stored = store.catalog.find(tableName)
      const step = stored && nextStep(stored)
      if (!step || signal.aborted) return
      await step(store, stored, signal)
    }
  }
}

function nextStep({ description, timeToLive }: StoredTable): Step | undefined {
  const states = new Set((description.GlobalSecondaryIndexes ?? []).map(({ IndexStatus }) => IndexStatus))
  if (description.TableStatus === 'DELETING') return dropTable
  if (states.has('DELETING')) return dropIndexes
  if (states.has('CREATING') || timeToLive?.status === 'ENABLING') return backfill
  return undefined
}

async function dropTable(store: Store, { description }: StoredTable, signal: AbortSignal): Promise<void> {
  await store.indexes.drain()
  for (const prefix of [allIndexesPrefix(description.TableId), itemPrefix(description.TableId)]) {
    await deleteRecords(store, prefix, signal)
  }
  if (!signal.aborted) await store.catalog.remove(description.TableName)
}

async function dropIndexes(store: Store, { description }: StoredTable, signal: AbortSignal): Promise<void> {
  const dropped = namesOf(description.GlobalSecondaryIndexes, 'DELETING')
  await store.indexes.drain()
  for (const name of dropped) await deleteRecords(store, indexPrefix(description.TableId, name), signal)
  if (signal.aborted) return
  await store.catalog.update(description.TableName, (current) => {
    current.GlobalSecondaryIndexes = (current.GlobalSecondaryIndexes ?? []).filter(
      ({ IndexName }) => !dropped.includes(IndexName),
    )
    current.TableStatus = 'ACTIVE'
    return {}
  })
}

/** Writes the index rows of every item again, from its newest state. Newer writes add their own. */
async function backfill(store: Store, { description, timeToLive }: StoredTable, signal: AbortSignal): Promise<void> {
  const { TableName, TableId } = description
  const created = namesOf(description.GlobalSecondaryIndexes, 'CREATING')
  await forEachBatch(store, itemPrefix(TableId), signal, (record, changes) => {
    const item: Item | undefined = store.commits.latest(record)
    const itemKey = record.slice(itemPrefix(TableId).length)
    if (item) stageWrite(store, changes, writeOf(store.catalog.existing(TableName), itemKey, undefined, item))
  })
  if (signal.aborted) return
  await store.catalog.update(TableName, (current) => {
    for (const index of current.GlobalSecondaryIndexes ?? []) {
      if (created.includes(index.IndexName)) Object.assign(index, { IndexStatus: 'ACTIVE', Backfilling: false })
    }
    if (created.length > 0) current.TableStatus = 'ACTIVE'
    return timeToLive?.status === 'ENABLING' ? { timeToLive: { ...timeToLive, status: 'ENABLED' } } : {}
  })
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
    const batch = await records.nextv(RECORDS_A_BATCH)
    if (batch.length === 0) return
    const changes: Changes = new Map()
    for (const record of batch) visit(record, changes)
    if (changes.size > 0) await store.commits.commit(changes)
  }
}

function namesOf(indexes: SecondaryIndex[] | undefined, status: SecondaryIndex['IndexStatus']): string[] {
  return (indexes ?? []).filter(({ IndexStatus }) => IndexStatus === status).map(({ IndexName }) => IndexName)
}
