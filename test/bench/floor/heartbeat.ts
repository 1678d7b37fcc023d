import { GetItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb'
import * as keys from '@platform/core/db/keys'
import { createHash, randomBytes } from 'node:crypto'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
import { type FloorRelay, relayOf } from './relay-token.ts'
import { type Attributes, keyOf, numberOf, store, TableName, textOf } from './store.ts'

/** `POST /api/v1/relay/heartbeat` of a relay whose nodes are as they were, with nothing to do. */
export async function handler(event: FloorEvent): Promise<FloorAnswer> {
  const relay = await relayOf(event.headers['authorization'], event.rawPath, event.body ?? '')
  if (relay === undefined) return refuse(401)
  const beat = JSON.parse(event.body ?? '')
  if (!Array.isArray(beat.nodes) || !Array.isArray(beat.running)) return refuse(400)
  const Key = keyOf(keys.cluster(relay.organisationId, relay.clusterId))
  const { Item: cluster = {} } = await store.send(new GetItemCommand({ TableName, Key }))
  if (textOf(cluster, 'relayId') !== relay.relayId) return refuse(401)
  if (hashOf(beat.nodes) !== textOf(cluster, 'nodesHash') || numberOf(cluster, 'waitingJobs') > 0) return refuse(501)
  const recentTokens = spent(textOf(cluster, 'recentTokens'), relay)
  if (recentTokens === undefined) return refuse(401)
  await store.send(new UpdateItemCommand({ TableName, Key, ...recording(cluster, recentTokens) }))
  const serverTime = new Date().toISOString()
  return respond(200, { heartbeatIntervalSeconds: 30, jobs: [], cancel: [], serverTime })
}

const hashOf = (nodes: { id: string; status: string }[]): string =>
  createHash('sha256')
    .update(JSON.stringify(nodes.map(({ id, status }) => `${id} ${status}`).toSorted()))
    .digest('hex')
    .slice(0, 16)

function spent(remembered: string, { tokenId, issuedAtMs }: FloorRelay): string | undefined {
  const id = createHash('sha256').update(tokenId).digest('hex').slice(0, 10)
  const issued = Math.ceil(issuedAtMs / 1000)
  const [floor = '0', ...known] = remembered.split(',')
  if (issued <= Number.parseInt(floor, 36) || known.some((entry) => entry.startsWith(id))) return undefined
  const live = known.filter((entry) => Number.parseInt(entry.slice(10), 36) > Date.now() / 1000 - 130)
  return [floor, ...live, id + issued.toString(36)].join(',')
}

const recording = (cluster: Attributes, recentTokens: string) => ({
  UpdateExpression:
    'SET lastSeenAtMs = :now, saidGoodbye = :no, isSteady = :yes, recentTokens = :tokens, beatNonce = :nonce',
  ConditionExpression: 'beatNonce = :was AND relayId = :relay',
  ExpressionAttributeValues: {
    ':now': { N: String(Date.now()) },
    ':no': { BOOL: false },
    ':yes': { BOOL: true },
    ':tokens': { S: recentTokens },
    ':nonce': { S: randomBytes(6).toString('base64url') },
    ':was': { S: textOf(cluster, 'beatNonce') },
    ':relay': { S: textOf(cluster, 'relayId') },
  },
  ReturnValues: 'ALL_NEW' as const,
})
