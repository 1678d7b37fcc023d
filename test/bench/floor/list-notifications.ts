import { BatchGetItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { timeOf } from '@platform/core/id'
import { claimsOf } from './access-token.ts'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
import { type Attributes, keyOf, store, TableName, textOf } from './store.ts'

const pageSize = 20

/** `GET /api/v1/notifications`: the first page, of a user who has never marked all as read. */
export async function handler(event: FloorEvent): Promise<FloorAnswer> {
  const claims = await claimsOf(event.headers['authorization'])
  if (claims === undefined) return refuse(401)
  const query = new QueryCommand({
    TableName,
    KeyConditionExpression: 'pk = :pk AND sk >= :first',
    ExpressionAttributeValues: { ':pk': { S: keys.feed(claims.org, claims.sub, '').pk }, ':first': { S: 'notif_0' } },
    ScanIndexForward: false,
    ConsistentRead: true,
  })
  const { Items: entries = [] } = await store.send(query)
  const shown = entries.slice(0, pageSize)
  const Keys = shown.map((entry) => keyOf(keys.notification(claims.org, textOf(entry, 'sk'))))
  const RequestItems = { [TableName]: { Keys, ConsistentRead: true } }
  const { Responses } = await store.send(new BatchGetItemCommand({ RequestItems }))
  const details = new Map((Responses?.[TableName] ?? []).map((item) => [textOf(item, 'sk'), item]))
  const unreadCount = entries.filter((entry) => entry['isRead']?.BOOL !== true).length
  const items = shown.map((entry) => viewOf(entry, details.get(textOf(entry, 'sk')) ?? {}))
  return respond(200, { items, totalCount: entries.length, unreadCount, page: 1, pageSize })
}

const viewOf = (entry: Attributes, detail: Attributes) => ({
  id: textOf(entry, 'sk'),
  type: textOf(detail, 'type'),
  title: textOf(detail, 'title'),
  body: textOf(detail, 'body'),
  severity: textOf(detail, 'severity'),
  resource: textOf(detail, 'resource'),
  read: entry['isRead']?.BOOL === true,
  createdAt: new Date(timeOf(textOf(entry, 'sk'))).toISOString(),
})
