import { type AttributeValue, BatchGetItemCommand, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import * as keys from '@platform/core/db/keys'
import { zstdCompressSync } from 'node:zlib'
import { claimsOf } from './access-token.ts'
import { type FloorJob, jobsOf } from './batch-body.ts'
import { type FloorAnswer, type FloorEvent, refuse, respond } from './gateway.ts'
import { newId, putNew, putRecord } from './record.ts'
import { type Attributes, keyOf, store, TableName } from './store.ts'

const queue = new SQSClient()
const announceAgainMs = 30_000
const chunkBytes = 65_536

/** `POST /api/v1/jobs/batch` */
export async function handler(event: FloorEvent): Promise<FloorAnswer> {
  const claims = await claimsOf(event.headers['authorization'])
  if (claims === undefined) return refuse(401)
  const jobs = jobsOf(event)
  if (jobs === undefined) return refuse(400)

  const { org: organisationId, sub: createdBy } = claims
  const batchId = newId('batch')
  const clusterIds = [...new Set(jobs.map(({ clusterId }) => clusterId))]
  const gate = await lookUp(organisationId, clusterIds)
  if (gate === undefined) return refuse(403)
  const facts = { organisationId, batchId, createdBy, count: jobs.length, createdAtMs: Date.now() }
  const record = putRecord(claims, event.requestContext.http.sourceIp, told(facts))
  const steps = [
    isThere(organisationId, clusterIds[0] ?? ''),
    open(facts, gate),
    ...rows(facts, jobs, clusterIds),
    record,
  ]
  await store.send(new TransactWriteItemsCommand({ TransactItems: steps }))
  const MessageBody = JSON.stringify({ organisationId, batchId })
  const message = { QueueUrl: process.env['PLAT_QUEUE_BATCHES'], MessageBody, MessageGroupId: organisationId }
  await queue.send(new SendMessageCommand(message))
  return respond(202, {
    batchId,
    jobIds: jobs.map((_, index) => `job${batchId.slice('batch'.length, -3)}${String(index).padStart(3, '0')}`),
    submittedCount: jobs.length,
    createdAt: new Date(facts.createdAtMs).toISOString(),
  })
}

interface Facts {
  organisationId: string
  batchId: string
  createdBy: string
  count: number
  createdAtMs: number
}

const told = ({ batchId, createdBy, count }: Facts) => ({
  audit: { detail: `${count} jobs`, action: 'batch.submit', resource: batchId },
  event: { name: 'batch.accepted', subject: batchId, data: { batchId, submittedCount: count, createdBy } },
  moves: [],
})

/** The gate, if all clusters but the first are there. */
async function lookUp(organisationId: string, clusterIds: readonly string[]): Promise<Attributes | undefined> {
  const asked = [
    keyOf(keys.removalGuard(organisationId)),
    ...clusterIds.slice(1).map((id) => keyOf(keys.cluster(organisationId, id))),
  ]
  const parts = Array.from({ length: Math.ceil(asked.length / 100) }, (_, part) =>
    asked.slice(part * 100, part * 100 + 100),
  )
  const answers = await Promise.all(
    parts.map((Keys) =>
      store.send(new BatchGetItemCommand({ RequestItems: { [TableName]: { Keys, ConsistentRead: true } } })),
    ),
  )
  const found = answers.flatMap(({ Responses }) => Responses?.[TableName] ?? [])
  const clusters = found.filter((item) => item['name'] !== undefined)
  if (clusters.length < clusterIds.length - 1) return undefined
  return found.find((item) => item['name'] === undefined) ?? {}
}

const returnOld = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const

const isThere = (organisationId: string, clusterId: string) => ({
  ConditionCheck: {
    TableName,
    Key: keyOf(keys.cluster(organisationId, clusterId)),
    ConditionExpression: 'attribute_exists(pk)',
    ...returnOld,
  },
})

function open({ organisationId, batchId }: Facts, { removals }: Attributes) {
  return {
    Update: {
      TableName,
      Key: keyOf(keys.removalGuard(organisationId)),
      UpdateExpression: 'ADD version :one, accepted :one, #open :batch',
      ConditionExpression: removals === undefined ? 'attribute_not_exists(removals)' : 'removals = :removals',
      ExpressionAttributeNames: { '#open': 'open' },
      ExpressionAttributeValues: {
        ':one': { N: '1' },
        ':batch': { SS: [batchId] },
        ...(removals !== undefined && { ':removals': removals }),
      },
      ...returnOld,
    },
  }
}

function rows(facts: Facts, jobs: readonly FloorJob[], clusterIds: readonly string[]) {
  const { organisationId, batchId } = facts
  const places = new Map(clusterIds.map((id, place) => [id, place]))
  const lines = jobs.map(({ clusterId, payload }) => `[${places.get(clusterId)},3600,3600]\t${JSON.stringify(payload)}`)
  const starts = startsOf(lines)
  const chunks = starts.map((start, chunk) => squeezed(lines.slice(start, starts[chunk + 1])))
  return [
    putNew(batchItem(facts, starts)),
    putNew({ ...keyOf(keys.batchClusters(organisationId, batchId)), clusters: squeezed(clusterIds) }),
    ...chunks.map((lines, chunk) => putNew({ ...keyOf(keys.batchChunk(organisationId, batchId, chunk)), jobs: lines })),
  ]
}

const squeezed = (lines: readonly string[]): AttributeValue => ({ B: zstdCompressSync(lines.join('\n')) })

function startsOf(lines: readonly string[]): number[] {
  const sizes = lines.map((line) => Buffer.byteLength(line) + 1)
  const limit = Math.max(chunkBytes, (2 * sizes.reduce((sum, size) => sum + size, 0)) / 88)
  const starts = [0]
  let filled = 0
  for (const [index, size] of sizes.entries()) {
    if (filled > 0 && filled + size > limit) {
      starts.push(index)
      filled = 0
    }
    filled += size
  }
  return starts
}

function batchItem({ organisationId, batchId, createdBy, count, createdAtMs }: Facts, starts: readonly number[]) {
  const { duepk, duesk } = keys.due(batchId, createdAtMs + announceAgainMs)
  return {
    ...keyOf(keys.batch(organisationId, batchId)),
    id: { S: batchId },
    organisationId: { S: organisationId },
    submittedCount: { N: String(count) },
    createdBy: { S: createdBy },
    starts: { L: starts.map((start) => ({ N: String(start) })) },
    expanded: { N: '0' },
    createdAtMs: { N: String(createdAtMs) },
    gsi1pk: { S: keys.organisationBatches(organisationId) },
    duepk: { S: duepk },
    duesk: { S: duesk },
  }
}
