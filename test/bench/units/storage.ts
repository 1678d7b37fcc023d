import { config } from '@platform/core/config'
import { tableIndexes } from '@platform/core/db/schema'
import { itemSize } from '@platform/local/emulators/dynamodb/item-size'
import type { Item } from '@platform/local/emulators/dynamodb/types'
import { askStore } from './ask-store.ts'

/** Bytes that DynamoDB adds to each item and to each entry of an index. */
const overheadBytes = 100

/** How much the table and its indexes hold, as storage is billed. */
export async function storedBytes(): Promise<number> {
  let bytes = 0
  let after: Item | undefined
  do {
    const answer = await askStore('Scan', { TableName: config.PLAT_TABLE, ExclusiveStartKey: after })
    for (const item of answer.Items) bytes += bytesOf(item)
    after = answer.LastEvaluatedKey
  } while (after !== undefined)
  return bytes
}

function bytesOf(item: Item): number {
  const entries = Object.values(tableIndexes).filter((keys) => keys.every((key) => item[key] !== undefined))
  const sizes = entries.map((keys) =>
    itemSize(Object.fromEntries(['pk', 'sk', ...keys].map((key) => [key, item[key] ?? {}]))),
  )
  return [itemSize(item), ...sizes].reduce((sum, size) => sum + size + overheadBytes, 0)
}
