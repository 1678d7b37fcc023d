import { type AttributeValue, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { Key } from '@platform/core/db/keys'

/** The SDK as it comes, and attribute maps by hand. */
export const store = new DynamoDBClient()

export const TableName = process.env['PLAT_TABLE'] ?? ''

export type Attributes = Record<string, AttributeValue>

export const keyOf = ({ pk, sk }: Key) => ({ pk: { S: pk }, sk: { S: sk } })
export const textOf = (item: Attributes, name: string): string => item[name]?.S ?? ''
export const numberOf = (item: Attributes, name: string): number => Number(item[name]?.N ?? 0)
