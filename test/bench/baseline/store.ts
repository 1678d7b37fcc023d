import { type AttributeValue, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import type { Key } from '@platform/core/db/keys'

export const store = new DynamoDBClient()

export const TableName = process.env['PLAT_TABLE'] ?? ''

export type Attributes = Record<string, AttributeValue>

export const keyOf = ({ pk, sk }: Key) => ({ pk: { S: pk }, sk: { S: sk } })
export const stringOf = (item: Attributes, name: string): string => item[name]?.S ?? ''

const attributeOf = (value: unknown): AttributeValue => {
  if (typeof value === 'string') return { S: value }
  if (typeof value === 'boolean') return { BOOL: value }
  if (value instanceof Uint8Array) return { B: value }
  if (value instanceof Set) return { SS: [...value].map(String) }
  return { N: String(value) }
}

export const attributesOf = (item: object): Attributes =>
  Object.fromEntries(Object.entries(item).map(([name, value]) => [name, attributeOf(value)]))

export const decode = (item: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(item).map(([name, { S, N, BOOL }]) => [name, S ?? BOOL ?? Number(N)]))

export interface BaselineEvent {
  rawPath: string
  headers: Readonly<Record<string, string | undefined>>
  body?: string
  requestContext: { http: { sourceIp: string } }
}

export interface BaselineResponse {
  statusCode: number
  headers: Record<string, string>
  body: string
  isBase64Encoded: false
}

export const respond = (statusCode: number, body: object): BaselineResponse => ({
  statusCode,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
  isBase64Encoded: false,
})

export const reject = (statusCode: number): BaselineResponse => respond(statusCode, { error: 'rejected' })
