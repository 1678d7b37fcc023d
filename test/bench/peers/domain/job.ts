import { TransactionCanceledException } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb'
import * as keys from '@platform/core/db/keys'
import { randomBytes } from 'node:crypto'
import * as z from 'zod'
import { type Item, store, TableName } from './store.ts'
import type { Claims } from './token.ts'

const queue = new SQSClient()
const lifeMs = 3_600_000
const announceAgainMs = 30_000

/** What a caller submits. */
export const Submission = z.object({
  clusterId: z.string().max(64),
  type: z.literal('InvokeScript'),
  payload: z.object({ script: z.string().min(1).max(65_536) }),
})
export type Submission = z.infer<typeof Submission>

/** Accepts a job in one transaction and announces it; undefined where the cluster is not there. */
export async function submitJob({ org, sub }: Claims, address: string, { clusterId, payload }: Submission) {
  const id = newId('job')
  const createdAtMs = Date.now()
  const job = { id, organisationId: org, clusterId, type: 'InvokeScript', status: 'Queued' as const }
  const rest = { timeoutSeconds: 3600, createdAtMs, createdBy: sub, expiresAtMs: createdAtMs + lifeMs }
  const filed = { ...job, ...rest, ...keys.jobIndexKeys(job), ...keys.due(id, createdAtMs + announceAgainMs) }
  const TransactItems = [
    countUp(keys.cluster(org, clusterId)),
    putNew({ ...keys.job(org, id), ...filed }),
    putNew({ ...keys.payload(org, id), payload: JSON.stringify(payload) }),
    putNew(recordOf({ org, sub }, address, job)),
  ]
  try {
    await store.send(new TransactWriteCommand({ TransactItems }))
  } catch (error) {
    if (error instanceof TransactionCanceledException) return undefined
    throw error
  }
  const MessageBody = JSON.stringify({ organisationId: org, jobId: id })
  const message = { QueueUrl: process.env['PLAT_QUEUE_JOBS'], MessageBody, MessageGroupId: org }
  await queue.send(new SendMessageCommand(message))
  return { id, clusterId, type: job.type, status: job.status, createdAt: new Date(createdAtMs).toISOString() }
}

const newId = (prefix: string): string => `${prefix}_0${Date.now()}${randomBytes(6).toString('hex')}`

const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

const putNew = (item: Item) => ({
  Put: { TableName, Item: item, ConditionExpression: 'attribute_not_exists(pk)', ...returnOld },
})

const countUp = (key: keys.Key) => ({
  Update: {
    TableName,
    Key: { ...key },
    UpdateExpression: 'ADD activeJobs :one',
    ConditionExpression: 'attribute_exists(pk)',
    ExpressionAttributeValues: { ':one': 1 },
    ...returnOld,
  },
})

/** What the change leaves in the outbox. */
function recordOf({ org, sub }: Pick<Claims, 'org' | 'sub'>, address: string, job: { id: string; clusterId: string }) {
  const id = newId('evt')
  const data = { jobId: job.id, clusterId: job.clusterId, type: 'InvokeScript', createdBy: sub }
  const record = JSON.stringify({
    actor: { kind: 'user', id: sub },
    address,
    traceId: randomBytes(16).toString('hex'),
    atMs: Date.now(),
    audit: { detail: job.clusterId, action: 'job.submit', resource: job.id },
    events: [{ name: 'job.queued', subject: job.id, data, id }],
    moves: [{ clusterId: job.clusterId, to: 'Queued' }],
  })
  return { ...keys.outbox(org, id), id, record, ...keys.due(id, Date.now() + announceAgainMs) }
}
