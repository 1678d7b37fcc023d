import * as z from 'zod'
import { batchLimit } from './batch.ts'
import { id, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json } from './endpoint.ts'
import { jobStatuses, outputSha256, statusReasons } from './job.ts'
import { listedClusterLimit } from './merge-groups.ts'

/** Maximum length of the sample of a group, in characters. */
export const maxSampleLength = 2000
/** Maximum number of groups with a sample of the output. */
export const sampledGroupLimit = 40
/** Maximum length of the output in a list of results, in characters. */
export const maxResultOutputLength = 4000

const outcomeFields = {
  statusReason: z.enum(statusReasons).optional(),
  exitCode: z
    .int32()
    .nullable()
    .meta({ description: 'null if the script did not run, or did not exit by itself', example: 0 }),
  outputSha256: outputSha256
    .nullable()
    .meta({ description: '`result.outputSha256` of the jobs; null without a result' }),
}

/** Jobs that ended with the same status, reason, exit code and output. */
export const JobGroup = z
  .object({
    key: z.string().max(16).meta({
      description: 'Identifies the group. Equal results have the same key, in every batch',
      example: '4f0c1b7a9d2e6358',
    }),
    status: z.enum(['Completed', 'Failed', 'Cancelled']),
    ...outcomeFields,
    count: z.int32().min(1).max(batchLimit).meta({ description: 'Number of jobs', example: 287 }),
    sample: z
      .string()
      .max(maxSampleLength)
      .optional()
      .meta({
        description: `The first ${maxSampleLength} characters of the output of one job, or fewer. Absent without a result, and after the first ${sampledGroupLimit} groups`,
        example: 'Linux 6.1.0\n',
      }),
    sampleTruncated: z.boolean().optional().meta({ description: 'Whether the output is longer than `sample`' }),
    sampleJobId: id('job').meta({ description: 'A job of the group, which has the complete output' }),
    clusterIds: z
      .array(id('clus'))
      .max(listedClusterLimit)
      .meta({ description: `The clusters of at most ${listedClusterLimit} jobs; …/groups/{group}/clusters lists all` }),
  })
  .meta({ id: 'JobGroup' })

export const JobGroups = z
  .object({
    groups: z.array(JobGroup).max(batchLimit),
    pending: z.int32().min(0).max(batchLimit).meta({
      description: 'Number of jobs that have not ended; once it is 0, the groups are complete',
      example: 0,
    }),
  })
  .meta({
    id: 'JobGroups',
    example: {
      groups: [
        {
          key: '91b2d4e8a0c37f56',
          status: 'Failed',
          statusReason: 'exit_nonzero',
          exitCode: 1,
          outputSha256: '5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03',
          count: 1,
          sample: 'hello\n',
          sampleTruncated: false,
          sampleJobId: 'job_01jd8w5k3zr9x2m4c7t6v0b1qa',
          clusterIds: ['clus_01jd8w5k3zr9x2m4c7t6v0b1qa'],
        },
      ],
      pending: 0,
    },
  })

/** A cluster of a group, with its job. */
export const GroupCluster = z
  .object({ clusterId: id('clus'), name: z.string().max(64).meta({ example: 'berlin-1' }), jobId: id('job') })
  .meta({ id: 'GroupCluster' })

/** One row of an export: a job of a batch with its result. */
export const JobOutcome = z
  .object({
    jobId: id('job'),
    clusterId: id('clus'),
    clusterName: z.string().max(64).meta({ example: 'berlin-1' }),
    status: z.enum(jobStatuses),
    ...outcomeFields,
    startedAt: timestamp.optional(),
    completedAt: timestamp.optional(),
    output: z
      .string()
      .max(maxResultOutputLength)
      .meta({
        description: `The first ${maxResultOutputLength} characters of the output, or fewer`,
        example: 'Linux\n',
      }),
    outputTruncated: z.boolean().meta({ description: 'Whether the output of the job is longer than `output`' }),
  })
  .meta({ id: 'JobOutcome' })

export type JobGroup = z.infer<typeof JobGroup>
export type JobGroups = z.infer<typeof JobGroups>
export type GroupCluster = z.infer<typeof GroupCluster>
export type JobOutcome = z.infer<typeof JobOutcome>

const batchId = pathId('batch')

export const getBatchGroups = createRoute({
  method: 'get',
  path: '/api/v1/jobs/batch/{batchId}/groups',
  access: 'jobs:read',
  tags: ['Batches'],
  summary: 'The ended jobs of a batch, grouped by equal results',
  description:
    'Failed groups first, then Cancelled and Completed ones; within a status, the largest first. Jobs are in one group if status, reason, exit code and all bytes of the output are equal. The response is current even while jobs still run; `pending` counts those.',
  request: { params: z.object({ batchId }) },
  responses: { 200: { description: 'The groups', content: json(JobGroups) } },
  errors: ['batch_not_found'],
  capabilities: ['table:read'],
})

export const listGroupClusters = createRoute({
  method: 'get',
  path: '/api/v1/jobs/batch/{batchId}/groups/{group}/clusters',
  access: 'jobs:read',
  tags: ['Batches'],
  summary: 'The clusters of a group',
  description:
    '`group` is the `key` of a group, or its position in the list, from 0. The key does not change, and neither does the position once all jobs have ended. The list has one item for each job, the last of the batch first.',
  request: {
    params: z.object({
      batchId,
      group: z.string().meta({ description: 'Key or position of the group', example: '0' }),
    }),
    query: z.strictObject(paging),
  },
  responses: { 200: { description: 'A page of clusters', content: json(pageOf(GroupCluster)) } },
  errors: ['batch_not_found', 'group_not_found'],
  capabilities: ['table:read'],
})

export const listBatchResults = createRoute({
  method: 'get',
  path: '/api/v1/jobs/batch/{batchId}/results',
  access: 'jobs:read',
  tags: ['Batches'],
  summary: 'The jobs of a batch with their results, for an export',
  description:
    'The list starts with the last job of the batch. `plat batch export` and the portal write all pages as CSV or JSON. Jobs that are not stored yet are missing while the batch runs.',
  request: { params: z.object({ batchId }), query: z.strictObject(paging) },
  responses: { 200: { description: 'A page of results', content: json(pageOf(JobOutcome)) } },
  errors: ['batch_not_found'],
  capabilities: ['table:read'],
})
