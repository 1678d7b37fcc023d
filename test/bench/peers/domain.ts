import { TransactionCanceledException, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { BatchGetCommand, DynamoDBDocumentClient, GetCommand, TransactWriteCommand } from '@aws-sdk/lib-dynamodb'
import * as keys from '@platform/core/db/keys'
import { type CryptoKey, decodeProtectedHeader, importJWK, jwtVerify } from 'jose'
import * as z from 'zod'
import { clusterBody, clusterKeys, rightsKeys, submissionOf } from '../baseline/wire.ts'

const store = DynamoDBDocumentClient.from(new DynamoDBClient())
const queue = new SQSClient()
const TableName = process.env['PLAT_TABLE'] ?? ''
type Item = Record<string, unknown>

const Claims = z.object({ sub: z.string(), sid: z.string(), org: z.string(), roles: z.array(z.string()) })
export type Claims = z.infer<typeof Claims>

const publicKeys = new Map<string, CryptoKey>()

/**
 * Verifies an access token without caching the result. Returns its claims if the token is valid and a role ends in
 * `Admin`.
 */
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
  const Keys = clusterKeys(organisationId, id).map((key) => ({ ...key }))
  const request = { RequestItems: { [TableName]: { Keys, ConsistentRead: true } } }
  const { Responses } = await store.send(new BatchGetCommand(request))
  return clusterBody(Responses?.[TableName] ?? [])
}

export const Submission = z.object({
  clusterId: z.string().max(64),
  type: z.literal('InvokeScript'),
  payload: z.object({ script: z.string().min(1).max(65_536) }),
})
export type Submission = z.infer<typeof Submission>

/**
 * Stores a job in one transaction and enqueues it. Returns undefined if the caller has no rights or the transaction is
 * cancelled, as for an unknown cluster.
 */
export async function submitJob({ org, sub, sid }: Claims, address: string, { clusterId, payload }: Submission) {
  const caller = { organisationId: org, userId: sub, sessionId: sid, address }
  const Keys = rightsKeys(caller).map((key) => ({ ...key }))
  const request = { RequestItems: { [TableName]: { Keys, ConsistentRead: true } } }
  const rights = (await store.send(new BatchGetCommand(request))).Responses?.[TableName] ?? []
  if (rights.length < 2 || rights.some(({ revokedAtMs }) => revokedAtMs !== undefined)) return undefined
  const { job, outbox, cluster, quota } = submissionOf(caller, { clusterId, payload })
  const TransactItems = [{ Update: conditioned(cluster) }, putNew(job), { Update: conditioned(quota) }, putNew(outbox)]
  try {
    await store.send(new TransactWriteCommand({ TransactItems }))
  } catch (error) {
    if (error instanceof TransactionCanceledException) return undefined
    throw error
  }
  const MessageBody = JSON.stringify({ organisationId: org })
  const message = { QueueUrl: process.env['PLAT_QUEUE_EVENTS'], MessageBody, MessageGroupId: org }
  await queue.send(new SendMessageCommand(message))
  const createdAt = new Date(job.createdAtMs).toISOString()
  return { id: job.id, clusterId, type: job.type, status: job.status, createdAt }
}

const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

const putNew = (item: Item) => ({
  Put: { TableName, Item: item, ConditionExpression: 'attribute_not_exists(pk)', ...returnOld },
})

const conditioned = <Request extends { values: Item }>({ values, ...request }: Request) => ({
  TableName,
  ...request,
  ExpressionAttributeValues: values,
  ...returnOld,
})
