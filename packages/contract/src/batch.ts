import * as z from 'zod'
import { id, pageOf, paging, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { BatchCounts } from './event.ts'

/** The most jobs of one batch (section 8). */
export const batchLimit = 500

/**
 * `jobs` may hold at most 500; more answers `batch_limit_exceeded`, which the verb checks before it looks at any of them.
 */
export const BatchSubmission = z
  .object({
    jobs: z
      .array(z.unknown())
      .min(1)
      .meta({
        description: 'One to 500 jobs, all for clusters of the organisation',
        override: {
          type: 'array',
          minItems: 1,
          maxItems: batchLimit,
          items: { $ref: '#/components/schemas/JobSubmission' },
        },
      }),
    maxConcurrency: z
      .int32()
      .min(1)
      .max(batchLimit)
      .optional()
      .meta({ description: 'At most so many jobs of the batch wait for a relay or run at once; absent: all' }),
    maxErrors: z.int32().min(0).max(batchLimit).optional().meta({
      description: 'Once more jobs than this have failed, those that have not begun are cancelled; absent: never',
    }),
  })
  .meta({ id: 'BatchSubmission' })

/** Section 2: the answer of a batch submission. The ids stand in the order of the request. */
export const AcceptedBatch = z
  .object({
    batchId: id('batch'),
    jobIds: z.array(id('job')).max(batchLimit),
    submittedCount: z.int32().min(1).max(batchLimit).meta({ example: 500 }),
    createdAt: timestamp,
  })
  .meta({ id: 'AcceptedBatch' })

export const batchStatuses = ['Running', 'Cancelling', 'Finished'] as const

/** A batch with its jobs counted by status. `finishedAt` is there once every job has ended. */
export const Batch = z
  .object({
    id: id('batch'),
    status: z.enum(batchStatuses).meta({ example: 'Running' }),
    submittedCount: z.int32().min(1).max(batchLimit).meta({ example: 500 }),
    counts: BatchCounts,
    maxConcurrency: z.int32().optional(),
    maxErrors: z.int32().optional(),
    retryOf: id('batch').optional().meta({ description: 'The batch whose failed jobs this one runs again' }),
    createdBy: z.string().max(40).meta({ example: 'user_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
    createdAt: timestamp,
    cancelRequestedAt: timestamp.optional(),
    finishedAt: timestamp.optional(),
  })
  .meta({ id: 'Batch' })

export type BatchSubmission = z.infer<typeof BatchSubmission>
export type AcceptedBatch = z.infer<typeof AcceptedBatch>
export type Batch = z.infer<typeof Batch>

const params = z.object({ batchId: pathId('batch') })

export const submitBatch = endpoint({
  method: 'POST',
  path: '/api/v1/jobs/batch',
  access: 'jobs:write',
  tag: 'Batches',
  summary: 'Submit up to 500 jobs at once',
  description:
    'All or nothing: one cluster that is not the organisation’s refuses the whole batch. Each job id answers at GET /jobs/{id} at once.',
  request: { body: BatchSubmission },
  responses: { 202: { description: 'Accepted and stored', schema: AcceptedBatch } },
  fails: [
    'batch_limit_exceeded',
    'cluster_forbidden',
    'unknown_job_type',
    'job_type_not_submittable',
    'node_not_in_cluster',
    'conflict',
  ],
  uses: ['table:read', 'table:write', 'queue:batches'],
})

export const listBatches = endpoint({
  method: 'GET',
  path: '/api/v1/jobs/batch',
  access: 'jobs:read',
  tag: 'Batches',
  summary: 'The batches of the organisation, newest first',
  request: { query: z.object(paging) },
  responses: { 200: { description: 'A page of batches', schema: pageOf(Batch) } },
  uses: ['table:read'],
})

export const getBatch = endpoint({
  method: 'GET',
  path: '/api/v1/jobs/batch/{batchId}',
  access: 'jobs:read',
  tag: 'Batches',
  summary: 'One batch with its jobs counted by status',
  request: { params },
  responses: { 200: { description: 'The batch', schema: Batch } },
  fails: ['batch_not_found'],
  uses: ['table:read'],
})

export const cancelBatch = endpoint({
  method: 'POST',
  path: '/api/v1/jobs/batch/{batchId}/cancel',
  access: 'jobs:write',
  tag: 'Batches',
  summary: 'Cancel every job of a batch that has not ended',
  request: { params },
  responses: { 202: { description: 'The batch as it stands now', schema: Batch } },
  fails: ['batch_not_found', 'batch_already_finished', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:batches'],
})

export const retryBatch = endpoint({
  method: 'POST',
  path: '/api/v1/jobs/batch/{batchId}/retry',
  access: 'jobs:write',
  tag: 'Batches',
  summary: 'Run the failed jobs of a batch again, as a new batch',
  description:
    'Jobs that failed or were cancelled are submitted anew; the batch that they came with stays as it is. Each call submits them anew: send an Idempotency-Key with it. Jobs whose cluster was removed are left out.',
  request: { params },
  responses: { 202: { description: 'The new batch', schema: AcceptedBatch } },
  fails: ['batch_not_found', 'nothing_to_retry', 'cluster_forbidden', 'node_not_in_cluster', 'conflict'],
  uses: ['table:read', 'table:write', 'queue:batches'],
})
