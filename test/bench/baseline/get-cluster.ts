import { BatchGetItemCommand } from '@aws-sdk/client-dynamodb'
import { verifyToken } from './access-token.ts'
import { type BaselineEvent, type BaselineResponse, keyOf, decode, reject, respond, store, TableName } from './store.ts'
import { clusterBody, clusterKeys } from './wire.ts'

export async function handler(event: BaselineEvent): Promise<BaselineResponse> {
  const claims = await verifyToken(event.headers['authorization'])
  if (claims === undefined) return reject(401)
  const id = event.rawPath.slice('/api/v1/clusters/'.length)
  const Keys = clusterKeys(claims.org, id).map(keyOf)
  const request = { RequestItems: { [TableName]: { Keys, ConsistentRead: true } } }
  const { Responses } = await store.send(new BatchGetItemCommand(request))
  const body = clusterBody((Responses?.[TableName] ?? []).map(decode))
  return body === undefined ? reject(404) : respond(200, body)
}
