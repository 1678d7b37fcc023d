import { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import * as keys from '@platform/core/db/keys'
import { claimsOf } from './access-token.ts'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
import { newId, putNew, putRecord } from './record.ts'
import { type Attributes, keyOf, store, TableName } from './store.ts'

const queue = new SQSClient()
const lifeMs = 3_600_000
const announceAgainMs = 30_000

/** `POST /api/v1/jobs` */
export async function handler(event: FloorEvent): Promise<FloorAnswer> {
  const claims = await claimsOf(event.headers['authorization'])
  if (claims === undefined) return refuse(401)
  const { clusterId, type, payload } = JSON.parse(event.body ?? '')
  if (typeof clusterId !== 'string' || type !== 'InvokeScript' || typeof payload?.script !== 'string')
    return refuse(400)

  const organisationId = claims.org
  const row = { id: newId('job'), organisationId, clusterId, createdBy: claims.sub, createdAtMs: Date.now() }
  const record = putRecord(claims, event.requestContext.http.sourceIp, told(row))
  await store.send(new TransactWriteItemsCommand({ TransactItems: [...steps(row, JSON.stringify(payload)), record] }))
  const MessageBody = JSON.stringify({ organisationId, jobId: row.id })
  const message = { QueueUrl: process.env['PLAT_QUEUE_JOBS'], MessageBody, MessageGroupId: organisationId }
  await queue.send(new SendMessageCommand(message))
  const createdAt = new Date(row.createdAtMs).toISOString()
  return respond(202, { id: row.id, clusterId, type, status: 'Queued', createdAt })
}

interface Row {
  id: string
  organisationId: string
  clusterId: string
  createdBy: string
  createdAtMs: number
}

const told = ({ id, clusterId, createdBy }: Row) => ({
  audit: { detail: clusterId, action: 'job.submit', resource: id },
  event: { name: 'job.queued', subject: id, data: { jobId: id, clusterId, type: 'InvokeScript', createdBy } },
  moves: [{ clusterId, to: 'Queued' }],
})

function steps(row: Row, payload: string) {
  const { id, organisationId, clusterId } = row
  const countUp = {
    TableName,
    Key: keyOf(keys.cluster(organisationId, clusterId)),
    UpdateExpression: 'ADD activeJobs :one',
    ConditionExpression: 'attribute_exists(pk)',
    ExpressionAttributeValues: { ':one': { N: '1' } },
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  }
  const payloadItem = { ...keyOf(keys.payload(organisationId, id)), payload: { S: payload } }
  return [{ Update: countUp }, putNew(jobItem(row)), putNew(payloadItem)]
}

function jobItem({ id, organisationId, clusterId, createdBy, createdAtMs }: Row): Attributes {
  const filing = keys.jobIndexKeys({ organisationId, clusterId, status: 'Queued' })
  const { duepk, duesk } = keys.due(id, createdAtMs + announceAgainMs)
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
    expiresAtMs: { N: String(createdAtMs + lifeMs) },
    gsi1pk: { S: filing.gsi1pk },
    gsi2pk: { S: filing.gsi2pk },
    gsi3pk: { S: filing.gsi3pk },
    duepk: { S: duepk },
    duesk: { S: duesk },
  }
}
