import { paginateScan } from '@aws-sdk/client-dynamodb'
import { config } from '@platform/core/config'
import { decode } from '@platform/core/db/expression'
import { client, type Item } from '@platform/core/db/table'

export async function readTable(): Promise<Item[]> {
  const items: Item[] = []
  for await (const page of paginateScan({ client }, { TableName: config.PLAT_TABLE, ConsistentRead: true }))
    items.push(...(page.Items ?? []).map(decode))
  return items
}
