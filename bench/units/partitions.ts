import { tableIndexes } from '@platform/core/db/schema'
import { writeUnitsOf } from '@platform/local/emulators/dynamodb/capacity'
import { itemSize } from '@platform/local/emulators/dynamodb/item-size'
import type { Item } from '@platform/local/emulators/dynamodb/types'

/** Which partitions a write pays in: the rules by which DynamoDB bills, applied to an item as it was and as it is. */

/** One write. */
export interface Write {
  before?: Item | undefined
  after?: Item | undefined
  /** 2 in a transaction. */
  factor: number
}

/** Write units by partition: its key, for indexes with the index's name before it. */
export type Partitions = Record<string, number>

const indexes = Object.entries(tableIndexes)

/** What a write takes of each partition that it touches. An entry of an index that moves is deleted and written, and pays for both. */
export function partitionsOf({ before, after, factor }: Write): Partitions {
  const units: Partitions = {}
  const add = (partition: string, count: number) => {
    units[partition] = (units[partition] ?? 0) + count * factor
  }
  const sizes = [before, after].map((item) => (item === undefined ? 0 : itemSize(item)))
  add((after ?? before)?.['pk']?.S ?? '', writeUnitsOf(Math.max(...sizes)))
  for (const [name, keys] of indexes) {
    const [old, fresh] = [entryOf(before, keys), entryOf(after, keys)]
    if (JSON.stringify(old) === JSON.stringify(fresh)) continue
    for (const entry of [old, fresh]) {
      if (entry !== undefined) add(`${name} ${entry[keys[0]]?.S}`, writeUnitsOf(itemSize(entry)))
    }
  }
  return units
}

/** What an index holds of an item: keys only; nothing where one of its own is missing. */
function entryOf(item: Item | undefined, keys: readonly string[]): Item | undefined {
  if (item === undefined || !keys.every((key) => item[key]?.S)) return undefined
  const held = [...new Set(['pk', 'sk', ...keys])].filter((key) => item[key] !== undefined)
  return Object.fromEntries(held.map((key) => [key, item[key] ?? { S: '' }]))
}

const id = /\b(?!org_)([a-z]+)_[0-9a-z]{26}\b/g

/**
 * The kind of a partition: ids replaced by what they are of. What names an organisation and nothing else is one partition of
 * each organisation, `PLATFORM` one of the whole platform.
 */
export const kindOf = (partition: string): string =>
  partition
    .replaceAll(id, '{$1}')
    .replaceAll(/\borg_[0-9a-z]{26}\b/g, '{org}')
    .replace(/^(due DUE)#\d$/, '$1#{shard}')
    .replace(/(#KEPT|SITE-NAME|CLUSTER-NAME|FAILED|USERNAME|REQUEST|FAULTS|actor|action|resource)#.*$/, '$1#{…}')

/** Sums partitions by kind. */
export function addKinds(sum: Partitions, partitions: Partitions): void {
  for (const [partition, units] of Object.entries(partitions)) {
    const kind = kindOf(partition)
    sum[kind] = (sum[kind] ?? 0) + units
  }
}
