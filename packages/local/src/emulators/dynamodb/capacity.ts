import type { Input, Item } from './types.ts'
import { itemSize } from './item-size.ts'

const WRITE_UNIT_BYTES = 1024
const READ_UNIT_BYTES = 4096
/** A transaction consumes twice the capacity of the table, because it prepares and commits each item. */
export const TRANSACTION_FACTOR = 2

/** Capacity units that a call consumes: of one table and of each of its indexes. */
export interface Cost {
  table: number
  global: Record<string, number>
  local: Record<string, number>
}

export const tableCost = (units: number): Cost => ({ table: units, global: {}, local: {} })

export function writeUnitsOf(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / WRITE_UNIT_BYTES))
}

/** Returns the write units of a request that fails and leaves the item unchanged. */
export function itemWriteUnits(item: Item | undefined): number {
  return writeUnitsOf(item ? itemSize(item) : 0)
}

export function readUnitsOf(bytes: number, isConsistent: boolean): number {
  const units = Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES))
  return isConsistent ? units : units / 2
}

export function itemReadUnits(item: Item | undefined, isConsistent: boolean): number {
  return readUnitsOf(item ? itemSize(item) : 0, isConsistent)
}

export function totalOf(cost: Cost): number {
  return [cost.global, cost.local].flatMap(Object.values<number>).reduce((sum, units) => sum + units, cost.table)
}

/** As measured on AWS, a transaction doubles the units of the table only. Its index writes are billed once. */
export function transactionCost(cost: Cost): Cost {
  return { ...cost, table: cost.table * TRANSACTION_FACTOR }
}

export class Bill {
  readonly #costs = new Map<string, Cost>()

  add(tableName: string, cost: Cost): void {
    const sum = this.#costs.get(tableName) ?? tableCost(0)
    sum.table += cost.table
    for (const [index, units] of Object.entries(cost.global)) sum.global[index] = (sum.global[index] ?? 0) + units
    for (const [index, units] of Object.entries(cost.local)) sum.local[index] = (sum.local[index] ?? 0) + units
    this.#costs.set(tableName, sum)
  }

  total(): number {
    return [...this.#costs.values()].reduce((sum, cost) => sum + totalOf(cost), 0)
  }

  /** Returns the `ConsumedCapacity` list of a response; undefined unless the client requested it. */
  describe(mode: unknown, kind?: CapacityKind): Input[] | undefined {
    if (mode !== 'TOTAL' && mode !== 'INDEXES') return undefined
    return Array.from(this.#costs, ([tableName, cost]) => describeCost(mode, tableName, cost, kind)!)
  }
}

type CapacityKind = 'ReadCapacityUnits' | 'WriteCapacityUnits'

/** With `kind`, as in transactions, the units are also returned under the name of the kind. */
export function describeCost(mode: unknown, tableName: string, cost: Cost, kind?: CapacityKind): Input | undefined {
  if (mode !== 'TOTAL' && mode !== 'INDEXES') return undefined
  const units = (usedUnits: number) => ({ CapacityUnits: usedUnits, ...(kind && { [kind]: usedUnits }) })
  const total = { TableName: tableName, ...units(totalOf(cost)) }
  if (mode === 'TOTAL') return total
  const unitsByIndex = (costs: Record<string, number>) =>
    Object.fromEntries(Object.entries(costs).map(([index, usedUnits]) => [index, units(usedUnits)]))
  return {
    ...total,
    Table: units(cost.table),
    ...(Object.keys(cost.global).length > 0 && { GlobalSecondaryIndexes: unitsByIndex(cost.global) }),
    ...(Object.keys(cost.local).length > 0 && { LocalSecondaryIndexes: unitsByIndex(cost.local) }),
  }
}
