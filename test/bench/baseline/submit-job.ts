import { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import * as keys from '@platform/core/db/keys'
import { type Claims, verifyToken } from './access-token.ts'
import {
  type Attributes,
  type BaselineEvent,
  type BaselineResponse,
  keyOf,
  reject,
  respond,
  store,
  TableName,
} from './store.ts'
import { newId, outboxRecord, queueTimeMs, retryMs } from './wire.ts'

const queue = new SQSClient()

export async function handler(event: BaselineEvent): Promise<BaselineResponse> {
  const claims = await verifyToken(event.headers['authorization'])
  if (claims === undefined) return reject(401)
  const { clusterId, type, payload } = JSON.parse(event.body ?? '')
  if (typeof clusterId !== 'string' || type !== 'InvokeScript' || typeof payload?.script !== 'string')
    return reject(400)

  const organisationId = claims.org
  const job = { id: newId('job'), organisationId, clusterId, createdBy: claims.sub, createdAtMs: Date.now() }
  const TransactItems = [
    { Update: incrementActiveJobs(job) },
    putNew(jobItem(job)),
    putNew({ ...keyOf(keys.payload(organisationId, job.id)), payload: { S: JSON.stringify(payload) } }),
    putNew(outboxItem(claims, event.requestContext.http.sourceIp, job)),
  ]
  await store.send(new TransactWriteItemsCommand({ TransactItems }))
  const MessageBody = JSON.stringify({ organisationId, jobId: job.id })
  const message = { QueueUrl: process.env['PLAT_QUEUE_EVENTS'], MessageBody, MessageGroupId: organisationId }
  await queue.send(new SendMessageCommand(message))
  const createdAt = new Date(job.createdAtMs).toISOString()
  return respond(202, { id: job.id, clusterId, type, status: 'Queued', createdAt })
}

interface Job {
  id: string
  organisationId: string
  clusterId: string
  createdBy: string
  createdAtMs: number
}

const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

const putNew = (Item: Attributes) => ({
  Put: { TableName, Item, ConditionExpression: 'attribute_not_exists(pk)', ...returnOld },
})

const incrementActiveJobs = ({ organisationId, clusterId }: Job) => ({
  TableName,
  Key: keyOf(keys.cluster(organisationId, clusterId)),
  UpdateExpression: 'ADD activeJobs :one',
  ConditionExpression: 'attribute_exists(pk)',
  ExpressionAttributeValues: { ':one': { N: '1' } },
  ...returnOld,
})

function jobItem({ id, organisationId, clusterId, createdBy, createdAtMs }: Job): Attributes {
  const indexKeys = keys.jobIndexKeys({ organisationId, clusterId, status: 'Queued' })
  const { duepk, duesk } = keys.due(id, createdAtMs + retryMs)
  return {
    ...keyOf(keys.job(organisationId, id)),
    id: { S: id },
    organisationId: { S: organisationId },
    clusterId: { S: clusterId },
    type: { S: 'InvokeScript' },
    status: { S: 'Queued' },
    timeoutSeconds: { N: '3600' },
    createdAtMs: { N: String(createdAtMs) },
    createdBy: { S: createdBy },
    expiresAtMs: { N: String(createdAtMs + queueTimeMs) },
    gsi1pk: { S: indexKeys.gsi1pk },
    gsi2pk: { S: indexKeys.gsi2pk },
    gsi3pk: { S: indexKeys.gsi3pk },
    duepk: { S: duepk },
    duesk: { S: duesk },
  }
}

function outboxItem({ org, sub }: Claims, address: string, { id: jobId, clusterId }: Job): Attributes {
  const id = newId('evt')
  const { duepk, duesk } = keys.due(id, Date.now() + retryMs)
  const record = outboxRecord(id, sub, address, jobId, clusterId)
  return {
    ...keyOf(keys.outbox(org, id)),
    id: { S: id },
    record: { S: record },
    duepk: { S: duepk },
    duesk: { S: duesk },
  }
}
