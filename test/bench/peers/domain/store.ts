import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'

/** The store as most people use it: the document client as it comes. */
export const store = DynamoDBDocumentClient.from(new DynamoDBClient())

export const TableName = process.env['PLAT_TABLE'] ?? ''

export type Item = Record<string, unknown>
