import { type AttributeValue, DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb'
import { clientSettings } from '../../packages/local/src/emulators/http/environment.ts'
import { readRuntimeFile } from '../../packages/local/src/runtime-file.ts'
import type { PlatformProcess } from '../support/platform.ts'

export type StoredItem = Record<string, AttributeValue>

export async function scan({ dataDir }: PlatformProcess): Promise<StoredItem[]> {
  const { dynamoDbUrl, accessKeyId, table: TableName } = await readRuntimeFile(dataDir)
  const client = new DynamoDBClient(clientSettings(dynamoDbUrl, accessKeyId))
  const all: StoredItem[] = []
  let after: StoredItem | undefined
  do {
    const { Items = [], LastEvaluatedKey } = await client.send(new ScanCommand({ TableName, ExclusiveStartKey: after }))
    all.push(...Items)
    after = LastEvaluatedKey
  } while (after !== undefined)
  client.destroy()
  return all
}
