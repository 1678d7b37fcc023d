import { BatchWriteCommand, ScanCommand } from '@aws-sdk/lib-dynamodb'
import { config } from '@platform/core/config'
import { client } from '@platform/core/db/client'
import type { Key } from '@platform/core/db/keys'
import { type Item } from '@platform/core/db/table'
import { chunk } from '@platform/core/lib/async'

const TableName = config.PLAT_TABLE

/** Every row of the table, as it stands now. */
export async function allRows(): Promise<Item[]> {
  const rows: Item[] = []
  let ExclusiveStartKey: Item | undefined
  do {
    const request = { TableName, ConsistentRead: true, ...(ExclusiveStartKey && { ExclusiveStartKey }) }
    const { Items = [], LastEvaluatedKey } = await client.send(new ScanCommand(request))
    rows.push(...Items)
    ExclusiveStartKey = LastEvaluatedKey
  } while (ExclusiveStartKey !== undefined)
  return rows
}

/** Takes rows out of the table, whatever they mean. */
export async function forget(rows: readonly (Item | Key)[]): Promise<void> {
  for (const part of chunk(rows, 25)) {
    const requests = part.map(({ pk, sk }) => ({ DeleteRequest: { Key: { pk, sk } } }))
    await client.send(new BatchWriteCommand({ RequestItems: { [TableName]: requests } }))
  }
}
