import { paginateScan } from '@aws-sdk/lib-dynamodb'
import { config } from '@platform/core/config'
import { client } from '@platform/core/db/table'
import { planted } from './schema.ts'

/** How many rows of the store hold what requests have planted where nobody asks for it. */
export async function plantedIn(): Promise<number> {
  let count = 0
  for await (const { Items = [] } of paginateScan({ client }, { TableName: config.PLAT_TABLE })) {
    count += Items.filter((item) => JSON.stringify(item, textOfSets).includes(planted)).length
  }
  return count
}

const textOfSets = (_name: string, value: unknown): unknown => (value instanceof Set ? [...value] : value)
