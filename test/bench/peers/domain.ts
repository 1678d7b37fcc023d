import { TransactionCanceledException, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { BatchGetCommand, DynamoDBDocumentClient, GetCommand, TransactWriteCommand } from '@aws-sdk/lib-dynamodb'
import * as keys from '@platform/core/db/keys'
import { type CryptoKey, decodeProtectedHeader, importJWK, jwtVerify } from 'jose'
import * as z from 'zod'
import { clusterBody, newId, outboxRecord, queueTimeMs, retryMs } from '../baseline/wire.ts'

const store = DynamoDBDocumentClient.from(new DynamoDBClient())
const queue = new SQSClient()
const TableName = process.env['PLAT_TABLE'] ?? ''
type Item = Record<string, unknown>

const Claims = z.object({ sub: z.string(), org: z.string(), roles: z.array(z.string()) })
export type Claims = z.infer<typeof Claims>

const publicKeys = new Map<string, CryptoKey>()

/** Verifies an access token without caching the result. Returns its claims if it is valid and of an administrator. */
export async function verifyToken(authorization = ''): Promise<Claims | undefined> {
  const token = authorization.replace(/^Bearer /, '')
  try {
    const options = { algorithms: ['EdDSA'], typ: 'at+jwt', issuer: 'platform', audience: 'platform-api' }
    const { kid = '' } = decodeProtectedHeader(token)
    const key = publicKeys.get(kid) ?? (await readKey(kid))
    publicKeys.set(kid, key)
    const claims = Claims.parse((await jwtVerify(token, key, options)).payload)
    return claims.roles.some((role) => role.endsWith('Admin')) ? claims : undefined
  } catch {
    return undefined
  }
}

async function readKey(kid: string): Promise<CryptoKey> {
  const { Item } = await store.send(new GetCommand({ TableName, Key: keys.tokenKeys('access'), ConsistentRead: true }))
  const { x } = Item?.[`key:${kid}`] ?? {}
  const key = await importJWK({ kty: 'OKP', crv: 'Ed25519', x: String(x) }, 'EdDSA')
  if (key instanceof Uint8Array) throw new Error('Ed25519 keys are not symmetric.')
  return key
}

export async function readCluster(organisationId: string, id: string) {
  const Keys = [{ ...keys.cluster(organisationId, id) }, { ...keys.nodes(organisationId, id) }]
  const request = { RequestItems: { [TableName]: { Keys, ConsistentRead: true } } }
  const { Responses } = await store.send(new BatchGetCommand(request))
  const items = Responses?.[TableName] ?? []
  const cluster = items.find(({ name }) => name !== undefined)
  return cluster && clusterBody(cluster, items.find(({ nodes }) => nodes !== undefined)?.['nodes'])
}

export const Submission = z.object({
  clusterId: z.string().max(64),
  type: z.literal('InvokeScript'),
  payload: z.object({ script: z.string().min(1).max(65_536) }),
})
export type Submission = z.infer<typeof Submission>

/**
 * Stores a job in one transaction and enqueues it. Returns undefined if the transaction is cancelled, as for an unknown
 * cluster.
 */
export async function submitJob({ org, sub }: Claims, address: string, { clusterId, payload }: Submission) {
  const id = newId('job')
  const createdAtMs = Date.now()
  const job = { id, organisationId: org, clusterId, type: 'InvokeScript', status: 'Queued' as const }
  const times = { timeoutSeconds: 3600, createdAtMs, createdBy: sub, expiresAtMs: createdAtMs + queueTimeMs }
  const indexKeys = { ...keys.jobIndexKeys(job), ...keys.due(id, createdAtMs + retryMs) }
  const eventId = newId('evt')
  const record = outboxRecord(eventId, sub, address, id, clusterId)
  const TransactItems = [
    { Update: incrementActiveJobs(keys.cluster(org, clusterId)) },
    putNew({ ...keys.job(org, id), ...job, ...times, ...indexKeys }),
    putNew({ ...keys.payload(org, id), payload: JSON.stringify(payload) }),
    putNew({ ...keys.outbox(org, eventId), id: eventId, record, ...keys.due(eventId, createdAtMs + retryMs) }),
  ]
  try {
    await store.send(new TransactWriteCommand({ TransactItems }))
  } catch (error) {
    if (error instanceof TransactionCanceledException) return undefined
    throw error
  }
  const MessageBody = JSON.stringify({ organisationId: org, jobId: id })
  const message = { QueueUrl: process.env['PLAT_QUEUE_EVENTS'], MessageBody, MessageGroupId: org }
  await queue.send(new SendMessageCommand(message))
  return { id, clusterId, type: job.type, status: job.status, createdAt: new Date(createdAtMs).toISOString() }
}

const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

const putNew = (item: Item) => ({
  Put: { TableName, Item: item, ConditionExpression: 'attribute_not_exists(pk)', ...returnOld },
})

const incrementActiveJobs = (key: keys.Key) => ({
  TableName,
  Key: { ...key },
  UpdateExpression: 'ADD activeJobs :one',
  ConditionExpression: 'attribute_exists(pk)',
  ExpressionAttributeValues: { ':one': 1 },
  ...returnOld,
})
