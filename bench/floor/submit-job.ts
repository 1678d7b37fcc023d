import { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import * as keys from '@platform/core/db/keys'
import { randomBytes } from 'node:crypto'
import { claimsOf } from './access-token.ts'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
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

  const jobId = newId()
  const createdAtMs = Date.now()
  const row = { id: jobId, organisationId: claims.org, clusterId, createdBy: claims.sub, createdAtMs }
  await store.send(new TransactWriteItemsCommand({ TransactItems: steps(row, JSON.stringify(payload)) }))
  const MessageBody = JSON.stringify({ organisationId: claims.org, jobId })
  await queue.send(new SendMessageCommand({ QueueUrl: process.env['PLAT_QUEUE_JOBS'], MessageBody }))
  return respond(202, { id: jobId, clusterId, type, status: 'Queued', createdAt: new Date(createdAtMs).toISOString() })
}

const newId = (): string => `job_0${Date.now()}${randomBytes(6).toString('hex')}`

interface Row {
  id: string
  organisationId: string
  clusterId: string
  createdBy: string
  createdAtMs: number
}

const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const
const isNew = { ConditionExpression: 'attribute_not_exists(pk)', ...returnOld }

function steps(row: Row, payload: string) {
  const { id, organisationId, clusterId } = row
  const countUp = {
    TableName,
    Key: keyOf(keys.cluster(organisationId, clusterId)),
    UpdateExpression: 'ADD activeJobs :one',
    ConditionExpression: 'attribute_exists(pk)',
    ExpressionAttributeValues: { ':one': { N: '1' } },
    ...returnOld,
  }
  const payloadItem = { ...keyOf(keys.payload(organisationId, id)), payload: { S: payload } }
  return [
    { Update: countUp },
    { Put: { TableName, Item: jobItem(row), ...isNew } },
    { Put: { TableName, Item: payloadItem, ...isNew } },
  ]
}

function jobItem({ id, organisationId, clusterId, createdBy, createdAtMs }: Row): Attributes {
  const { gsi1pk } = keys.jobFiling({ clusterId })
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
    gsi1pk: { S: gsi1pk },
    duepk: { S: duepk },
    duesk: { S: duesk },
  }
}
