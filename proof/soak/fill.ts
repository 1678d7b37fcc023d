import { randomBytes } from 'node:crypto'
import {
  type AttributeValue,
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DynamoDBClient,
} from '@aws-sdk/client-dynamodb'
import { clientSettings } from '../../packages/local/src/aws-environment.ts'
import { readRuntimeFile } from '../../packages/local/src/runtime-file.ts'
import type { PlatformProcess } from '../../test/support/platform.ts'

/** More than the embedded store keeps in memory of what was written and read: its limits are 64 MB in all. */
const itemCount = 24_000
const itemBytes = 4000

/** As many as one request may write. */
const atOnce = 25

/**
 * Writes items that nobody asks for, and reads them: the caches of the store are at their limits then, and what grows
 * afterwards is no cache.
 */
export async function fillCaches({ dataDir }: PlatformProcess): Promise<void> {
  const { dynamoDbUrl, accessKeyId, table } = await readRuntimeFile(dataDir)
  const client = new DynamoDBClient(clientSettings(dynamoDbUrl, accessKeyId))
  for (let first = 0; first < itemCount; first += atOnce) {
    const keys = Array.from({ length: atOnce }, (_, index) => keyOf(first + index))
    const puts = keys.map((key) => ({ PutRequest: { Item: { ...key, filling: { B: randomBytes(itemBytes) } } } }))
    await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: puts } }))
    await client.send(new BatchGetItemCommand({ RequestItems: { [table]: { Keys: keys } } }))
  }
  client.destroy()
}

const keyOf = (index: number): Record<'pk' | 'sk', AttributeValue> => ({
  pk: { S: `FILLING#${index}` },
  sk: { S: '-' },
})
