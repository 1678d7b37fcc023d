import { writeUnitsOf } from './capacity.ts'
import type { Cost } from './capacity.ts'
import { createIndexKey } from './dynalite.ts'
import { itemSize } from './item-size.ts'
import { indexPrefix } from './keys.ts'
import type { Item, SecondaryIndex, TableDescription } from './types.ts'

interface IndexRow {
  key: string
  row: Item
  bytes: number
}

export interface IndexChange {
  indexName: string
  isLocal: boolean
  deletedKey?: string
  newRow?: { key: string; row: Item }
  units: number
}

export function indexChanges(
  table: TableDescription,
  before: Item | undefined,
  after: Item | undefined,
): IndexChange[] {
  const changes: IndexChange[] = []
  for (const { index, isLocal } of indexesOf(table)) {
    if (before && after && isProjectionSame(table, index, before, after)) continue
    const change = changeOf(rowOf(table, index, before), rowOf(table, index, after))
    if (change) changes.push({ indexName: index.IndexName, isLocal, ...change })
  }
  return changes
}

export function indexesOf(table: TableDescription): { index: SecondaryIndex; isLocal: boolean }[] {
  const localIndexes = (table.LocalSecondaryIndexes ?? []).map((index) => ({ index, isLocal: true }))
  const global = (table.GlobalSecondaryIndexes ?? []).map((index) => ({ index, isLocal: false }))
  return [...localIndexes, ...global]
}

export function writeCost(before: Item | undefined, after: Item | undefined, changes: IndexChange[]): Cost {
  const bytes = Math.max(before ? itemSize(before) : 0, after ? itemSize(after) : 0)
  const cost: Cost = { table: writeUnitsOf(bytes), global: {}, local: {} }
  for (const { indexName, isLocal, units } of changes) (isLocal ? cost.local : cost.global)[indexName] = units
  return cost
}

/** Returns undefined if the item lacks a key attribute of the index. */
function rowOf(table: TableDescription, index: SecondaryIndex, item: Item | undefined): IndexRow | undefined {
  if (!item || !index.KeySchema.every(({ AttributeName }) => hasKeyAttribute(table, AttributeName, item)))
    return undefined
  const row = project(table, index, item)
  const key = indexPrefix(table.TableId, index.IndexName) + createIndexKey(item, table, index.KeySchema)
  return { key, row, bytes: itemSize(row) }
}

/** An item whose attribute has another type than the index key is not in the index. */
function hasKeyAttribute(table: TableDescription, attribute: string, item: Item): boolean {
  const type = table.AttributeDefinitions.find(({ AttributeName }) => AttributeName === attribute)!.AttributeType
  return Boolean(item[attribute]?.[type])
}

function project(table: TableDescription, index: SecondaryIndex, item: Item): Item {
  if (index.Projection.ProjectionType === 'ALL') return item
  const row: Item = {}
  for (const name of projectedNames(table, index)) {
    if (item[name] !== undefined) row[name] = item[name]
  }
  return row
}

const projectedNames = (table: TableDescription, { KeySchema, Projection }: SecondaryIndex): string[] => [
  ...[...table.KeySchema, ...KeySchema].map((key) => key.AttributeName),
  ...(Projection.NonKeyAttributes ?? []),
]

function isProjectionSame(table: TableDescription, index: SecondaryIndex, before: Item, after: Item): boolean {
  const isSame = (name: string) =>
    before[name] === after[name] || JSON.stringify(before[name]) === JSON.stringify(after[name])
  return index.Projection.ProjectionType !== 'ALL' && projectedNames(table, index).every(isSame)
}

/** A row whose key changes is billed for a deletion and a write; an unchanged row costs nothing. */
function changeOf(before: IndexRow | undefined, after: IndexRow | undefined) {
  if (before && after && before.key === after.key) {
    const isSame = before.bytes === after.bytes && JSON.stringify(before.row) === JSON.stringify(after.row)
    return isSame ? undefined : { newRow: after, units: writeUnitsOf(Math.max(before.bytes, after.bytes)) }
  }
  if (!before && !after) return undefined
  const deletion = before && { deletedKey: before.key, units: writeUnitsOf(before.bytes) }
  const writing = after && { newRow: after, units: writeUnitsOf(after.bytes) }
  return { ...deletion, ...writing, units: (deletion?.units ?? 0) + (writing?.units ?? 0) }
}
