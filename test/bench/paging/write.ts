import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { BatchWriteCommand, DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { range } from '../support/statistics.ts'
import { clientSettings, tableName } from '../support/world.ts'

/** An item as the table holds it. */
export type Stored = Record<string, unknown>

const putsAtOnce = 25
const callsAtOnce = 8

/** Writes items into the table of a world, in any order. */
export async function writeItems(environment: Record<string, string>, items: readonly Stored[]): Promise<void> {
  const store = DynamoDBDocumentClient.from(new DynamoDBClient(clientSettings(environment, 'DYNAMODB')), {
    marshallOptions: { removeUndefinedValues: true },
  })
  const starts = range(Math.ceil(items.length / putsAtOnce)).map((batch) => batch * putsAtOnce)
  const writeSome = async () => {
    for (let start = starts.shift(); start !== undefined; start = starts.shift()) {
      const puts = items.slice(start, start + putsAtOnce).map((Item) => ({ PutRequest: { Item } }))
      await store.send(new BatchWriteCommand({ RequestItems: { [tableName]: puts } }))
    }
  }
  await Promise.all(range(callsAtOnce).map(writeSome))
  store.destroy()
}
