import { BatchGetItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { claimsOf } from './access-token.ts'
import { summaryOf } from './cluster-view.ts'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
import { keyOf, numberOf, store, TableName } from './store.ts'

const pageSize = 20

/** `GET /api/v1/clusters`: the first page, unfiltered. */
export async function handler(event: FloorEvent): Promise<FloorAnswer> {
  const claims = await claimsOf(event.headers['authorization'])
  if (claims === undefined) return refuse(401)
  const Keys = [keyOf(keys.clusterOffsets(claims.org))]
  const { Responses } = await store.send(new BatchGetItemCommand({ RequestItems: { [TableName]: { Keys } } }))
  const query = new QueryCommand({
    TableName,
    KeyConditionExpression: 'pk = :pk',
    ExpressionAttributeValues: { ':pk': { S: keys.cluster(claims.org, '').pk } },
    Limit: pageSize,
    ScanIndexForward: false,
  })
  const { Items = [] } = await store.send(query)
  const totalCount = numberOf(Responses?.[TableName]?.[0] ?? {}, 'total')
  return respond(200, { items: Items.map(summaryOf), totalCount, page: 1, pageSize })
}
