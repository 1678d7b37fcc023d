import { BatchGetItemCommand, BatchWriteItemCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import * as keys from '@platform/core/db/keys'
import { claimsOf } from './access-token.ts'
import { jobsOf } from './batch-body.ts'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
import { newId } from './record.ts'
import { keyOf, store, TableName } from './store.ts'

const queue = new SQSClient()
const getsAtOnce = 100
const putsAtOnce = 25

/**
 * `POST /api/v1/jobs/batch` as it comes to mind first, one call after another: the clusters are looked up, 100 to a call,
 * and an item is written for each job, 25 to a call.
 */
export async function handler(event: FloorEvent): Promise<FloorAnswer> {
  const claims = await claimsOf(event.headers['authorization'])
  if (claims === undefined) return refuse(401)
  const jobs = jobsOf(event)
  if (jobs === undefined) return refuse(400)

  const { org: organisationId, sub: createdBy } = claims
  if (!(await areThere(organisationId, [...new Set(jobs.map(({ clusterId }) => clusterId))]))) return refuse(403)
  const batchId = newId('batch')
  const createdAtMs = Date.now()
  const shared = {
    organisationId: { S: organisationId },
    batchId: { S: batchId },
    createdBy: { S: createdBy },
    createdAtMs: { N: String(createdAtMs) },
    status: { S: 'Queued' },
  }
  const jobIds = jobs.map(() => newId('job'))
  const items = jobs.map(({ clusterId, payload }, index) => ({
    pk: { S: `BENCH#${jobIds[index]}` },
    sk: { S: 'JOB' },
    clusterId: { S: clusterId },
    ...shared,
    payload: { S: JSON.stringify(payload) },
  }))
  const header = {
    pk: { S: `BENCH#${batchId}` },
    sk: { S: 'BATCH' },
    submittedCount: { N: String(jobs.length) },
    ...shared,
  }
  const requests = [header, ...items].map((Item) => ({ PutRequest: { Item } }))
  for (let start = 0; start < requests.length; start += putsAtOnce) {
    const RequestItems = { [TableName]: requests.slice(start, start + putsAtOnce) }
    await store.send(new BatchWriteItemCommand({ RequestItems }))
  }
  const MessageBody = JSON.stringify({ organisationId, batchId })
  await queue.send(new SendMessageCommand({ QueueUrl: process.env['PLAT_QUEUE_BATCHES'], MessageBody }))
  const createdAt = new Date(createdAtMs).toISOString()
  return respond(202, { batchId, jobIds, submittedCount: jobs.length, createdAt })
}

async function areThere(organisationId: string, clusterIds: readonly string[]): Promise<boolean> {
  for (let start = 0; start < clusterIds.length; start += getsAtOnce) {
    const asked = clusterIds.slice(start, start + getsAtOnce)
    const Keys = asked.map((id) => keyOf(keys.cluster(organisationId, id)))
    const RequestItems = { [TableName]: { Keys, ConsistentRead: true } }
    const { Responses } = await store.send(new BatchGetItemCommand({ RequestItems }))
    if (Responses?.[TableName]?.length !== asked.length) return false
  }
  return true
}
