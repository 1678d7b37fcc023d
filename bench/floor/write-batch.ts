import { BatchWriteItemCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { claimsOf } from './access-token.ts'
import { jobsOf } from './batch-body.ts'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
import { newId } from './record.ts'
import { store, TableName } from './store.ts'

const queue = new SQSClient()
const putsAtOnce = 25

/** `POST /api/v1/jobs/batch` as it comes to mind first: an item of each job, 25 to a call, one call after another. */
export async function handler(event: FloorEvent): Promise<FloorAnswer> {
  const claims = await claimsOf(event.headers['authorization'])
  if (claims === undefined) return refuse(401)
  const jobs = jobsOf(event)
  if (jobs === undefined) return refuse(400)

  const { org: organisationId, sub: createdBy } = claims
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
    ...{ pk: { S: `BENCH#${jobIds[index]}` }, sk: { S: 'JOB' }, clusterId: { S: clusterId }, ...shared },
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
