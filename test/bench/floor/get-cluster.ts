import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { claimsOf } from './access-token.ts'
import { detailOf } from './cluster-view.ts'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
import { keyOf, store, TableName } from './store.ts'

/** `GET /api/v1/clusters/{id}` */
export async function handler(event: FloorEvent): Promise<FloorAnswer> {
  const claims = await claimsOf(event.headers['authorization'])
  if (claims === undefined) return refuse(401)
  const id = event.rawPath.slice('/api/v1/clusters/'.length)
  const Keys = [keyOf(keys.cluster(claims.org, id)), keyOf(keys.nodes(claims.org, id))]
  const request = { RequestItems: { [TableName]: { Keys, ConsistentRead: true } } }
  const { Responses } = await store.send(new BatchGetItemCommand(request))
  const items = Responses?.[TableName] ?? []
  const cluster = items.find((item) => item['name'] !== undefined)
  const nodes = items.find((item) => item['nodes'] !== undefined)
  return cluster === undefined ? refuse(404) : respond(200, detailOf(cluster, nodes))
}
