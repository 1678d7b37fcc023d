import { randomBytes } from 'node:crypto'
import {
  type AttributeValue,
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DynamoDBClient,
} from '@aws-sdk/client-dynamodb'
import { clientSettings } from '../../../packages/local/src/emulators/http/environment.ts'
import { readRuntimeFile } from '../../../packages/local/src/runtime-file.ts'
import type { PlatformProcess } from '../../support/platform.ts'

/** More than the embedded store keeps in memory of what was written and read: its limits are 64 MB in all. */
const itemCount = 24_000
const itemBytes = 4000

/** The store caches what it has had to decompress: this can be compressed, as what the platform writes can. */
const filling = (): string =>
  randomBytes(20)
    .toString('hex')
    .repeat(itemBytes / 40)

/** As many as one request may write. */
const atOnce = 25

/**
 * Writes items that nobody asks for, then reads them all: the caches of the store are at their limits then, and what grows
 * afterwards is no cache. What was written only a moment ago would be read from where it waits to be written to the disk.
 */
export async function fillCaches({ dataDir }: PlatformProcess): Promise<void> {
  const { dynamoDbUrl, accessKeyId, table } = await readRuntimeFile(dataDir)
  const client = new DynamoDBClient(clientSettings(dynamoDbUrl, accessKeyId))
  const groups = Array.from({ length: itemCount / atOnce }, (_, group) =>
    Array.from({ length: atOnce }, (_one, index) => keyOf(group * atOnce + index)),
  )
  for (const keys of groups) {
    const puts = keys.map((key) => ({ PutRequest: { Item: { ...key, filling: { S: filling() } } } }))
    await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: puts } }))
  }
  for (const Keys of groups) await client.send(new BatchGetItemCommand({ RequestItems: { [table]: { Keys } } }))
  client.destroy()
}

const keyOf = (index: number): Record<'pk' | 'sk', AttributeValue> => ({
  pk: { S: `FILLING#${index}` },
  sk: { S: '-' },
})
