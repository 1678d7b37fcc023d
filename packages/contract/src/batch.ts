import * as z from 'zod'
import { id, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { BatchCounts } from './event.ts'
import { BatchJob, purposeFields, Submitter } from './job.ts'
import { Target, targetCountLimit } from './target.ts'

/** Maximum number of jobs in a batch. */
export const batchLimit = 500

const targetMembers = ['target', 'type', 'payload', 'deliverWithinSeconds', 'expectedCount'] as const

/** The use case validates `jobs`: it reports `batch_limit_exceeded` before it validates the individual jobs. */
export const BatchSubmission = z
  .strictObject({
    jobs: z
      .array(z.unknown())
      .min(1)
      .optional()
      .meta({
        description:
          'One to 500 jobs, all for clusters of the organisation. Either `jobs`, or `target` with `type` and `payload`, is required',
        type: 'array',
        minItems: 1,
        maxItems: batchLimit,
        items: { $ref: '#/components/schemas/BatchJob' },
      }),
    target: Target.optional().meta({ description: 'Submits one job to each of these clusters, instead of `jobs`' }),
    type: BatchJob.shape.type.optional(),
    payload: BatchJob.shape.payload.optional(),
    deliverWithinSeconds: BatchJob.shape.deliverWithinSeconds,
    expectedCount: z.int32().min(0).max(targetCountLimit).optional().meta({
      description: 'Rejects the batch with `target_changed` if the target has another number of clusters',
    }),
    ...purposeFields,
    maxConcurrency: z.int32().min(1).max(batchLimit).optional().meta({
      description: 'Maximum number of jobs of the batch that are queued for a relay or running at once; default: all',
    }),
    maxErrors: z.int32().min(0).max(batchLimit).optional().meta({
      description: 'If more jobs than this fail, the jobs that have not started are cancelled; default: never',
    }),
  })
  .superRefine(({ jobs, ...submission }, context) => {
    const reject = (member: string, message: string) => context.addIssue({ code: 'custom', path: [member], message })
    const { target, type, payload } = submission
    if (jobs === undefined && target === undefined) reject('jobs', 'is required, unless there is a target')
    else if (jobs === undefined) {
      if (type === undefined) reject('type', 'is required with target')
      if (payload === undefined) reject('payload', 'is required with target')
    } else
      for (const member of targetMembers)
        if (submission[member] !== undefined) reject(member, 'must be absent with jobs')
  })
  .meta({ id: 'BatchSubmission' })

/** Response to a submitted batch. `jobIds` are in the order of `jobs` or `clusterIds`, else newest cluster first. */
export const AcceptedBatch = z
  .object({
    batchId: id('batch'),
    jobIds: z.array(id('job')).max(batchLimit),
    submittedCount: z.int32().min(1).max(batchLimit).meta({ example: 500 }),
    resolvedCount: z.int32().optional().meta({ description: 'With `target`: number of its clusters', example: 500 }),
    createdAt: timestamp,
  })
  .meta({ id: 'AcceptedBatch' })

export const batchStatuses = ['Running', 'Cancelling', 'Finished'] as const

/** A batch with its number of jobs by status. `finishedAt` is present once every job has ended. */
export const Batch = z
  .object({
    id: id('batch'),
    status: z.enum(batchStatuses).meta({ example: 'Running' }),
    submittedCount: z.int32().min(1).max(batchLimit).meta({ example: 500 }),
    counts: BatchCounts,
    maxConcurrency: z.int32().optional(),
    maxErrors: z.int32().optional(),
    retryOf: id('batch').optional().meta({ description: 'The batch whose failed jobs this one retries' }),
    title: z.string().max(100).meta({
      description: 'The name, or else the title of the script, or the number of different scripts',
      example: 'Rotate logs',
    }),
    name: z.string().max(100).optional().meta({ example: 'Rotate logs' }),
    reason: z.string().max(500).optional().meta({ example: 'Ticket 4711: disk is full' }),
    createdBy: Submitter,
    createdAt: timestamp,
    cancelRequestedAt: timestamp.optional(),
    finishedAt: timestamp.optional(),
  })
  .meta({ id: 'Batch' })

export type BatchSubmission = z.infer<typeof BatchSubmission>
export type AcceptedBatch = z.infer<typeof AcceptedBatch>
export type Batch = z.infer<typeof Batch>

const params = z.object({ batchId: pathId('batch') })

export const submitBatch = createRoute({
  method: 'post',
  path: '/api/v1/jobs/batch',
  access: 'jobs:write',
  tags: ['Batches'],
  summary: 'Submit up to 500 jobs at once',
  description:
    'All or nothing: the whole batch is rejected if one cluster does not belong to the organisation. A target is resolved once and includes every matching cluster that existed before the request; it must have at most 500 clusters. Each job is readable at GET /jobs/{id} immediately.',
  request: { body: jsonBody(BatchSubmission) },
  responses: { 202: { description: 'Accepted and stored', content: json(AcceptedBatch) } },
  errors: [
    'limit_reached',
    'batch_limit_exceeded',
    'target_changed',
    'filter_not_found',
    'filter_not_applicable',
    'cluster_forbidden',
    'unknown_job_type',
    'job_type_not_submittable',
    'node_not_in_cluster',
    'conflict',
  ],
  capabilities: ['table:read', 'table:write', 'queue:batches'],
})

export const listBatches = createRoute({
  method: 'get',
  path: '/api/v1/jobs/batch',
  access: 'jobs:read',
  tags: ['Batches'],
  summary: 'The batches of the organisation, newest first',
  request: { query: z.strictObject(paging) },
  responses: { 200: { description: 'A page of batches', content: json(pageOf(Batch)) } },
  capabilities: ['table:read'],
})

export const getBatch = createRoute({
  method: 'get',
  path: '/api/v1/jobs/batch/{batchId}',
  access: 'jobs:read',
  tags: ['Batches'],
  summary: 'One batch with its jobs counted by status',
  request: { params },
  responses: { 200: { description: 'The batch', content: json(Batch) } },
  errors: ['batch_not_found'],
  capabilities: ['table:read'],
})

export const cancelBatch = createRoute({
  method: 'post',
  path: '/api/v1/jobs/batch/{batchId}/cancel',
  access: 'jobs:write',
  tags: ['Batches'],
  summary: 'Cancel every job of a batch that has not ended',
  request: { params },
  responses: { 202: { description: 'The current state of the batch', content: json(Batch) } },
  errors: ['batch_not_found', 'batch_already_finished', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:batches'],
})

export const retryBatch = createRoute({
  method: 'post',
  path: '/api/v1/jobs/batch/{batchId}/retry',
  access: 'jobs:write',
  tags: ['Batches'],
  summary: 'Retry the failed jobs of a batch as a new batch',
  description:
    'Submits the failed and cancelled jobs again; the original batch does not change. Every call submits them again, so send an Idempotency-Key. Jobs of removed clusters are skipped.',
  request: { params },
  responses: { 202: { description: 'The new batch', content: json(AcceptedBatch) } },
  errors: [
    'batch_not_found',
    'nothing_to_retry',
    'cluster_forbidden',
    'node_not_in_cluster',
    'limit_reached',
    'conflict',
  ],
  capabilities: ['table:read', 'table:write', 'queue:batches'],
})
