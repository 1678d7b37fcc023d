import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { verifyToken } from './access-token.ts'
import { type BaselineEvent, type BaselineResponse, keyOf, plain, reject, respond, store, TableName } from './store.ts'
import { clusterBody } from './wire.ts'

export async function handler(event: BaselineEvent): Promise<BaselineResponse> {
  const claims = await verifyToken(event.headers['authorization'])
  if (claims === undefined) return reject(401)
  const id = event.rawPath.slice('/api/v1/clusters/'.length)
  const Keys = [keyOf(keys.cluster(claims.org, id)), keyOf(keys.nodes(claims.org, id))]
  const request = { RequestItems: { [TableName]: { Keys, ConsistentRead: true } } }
  const { Responses } = await store.send(new BatchGetItemCommand(request))
  const items = Responses?.[TableName] ?? []
  const cluster = items.find((item) => item['name'] !== undefined)
  const nodes = items.find((item) => item['nodes'] !== undefined)
  return cluster === undefined ? reject(404) : respond(200, clusterBody(plain(cluster), nodes?.['nodes']?.S))
}
