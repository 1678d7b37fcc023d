import * as z from 'zod'
import { id, line, pageOf, paging, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'

export const jobStatuses = ['Queued', 'Running', 'Completed', 'Failed', 'Cancelled'] as const
export const jobTypes = [
  'InvokeScript',
  'ModuleInstall',
  'ModuleUninstall',
  'PlatformUpdate',
  'PlatformRollback',
] as const
export const statusReasons = [
  'cancelled_by_user',
  'delivery_timeout',
  'exit_nonzero',
  'execution_timeout',
  'relay_rejected',
  'interrupted',
  'lease_lost',
  'dead_lettered',
  'batch_error_limit',
  'cluster_removed',
  'module_operation_failed',
  'update_failed',
] as const

export type JobStatus = (typeof jobStatuses)[number]

/** Default execution timeout of a job, in seconds. */
export const defaultTimeoutSeconds = 3600
/** Default delivery timeout of a job, in seconds. */
export const defaultDeliverWithinSeconds = 3600

/** Maximum size of a script, in bytes of UTF-8. */
export const maxScriptBytes = 262_144

/** Payload of `InvokeScript`. A shebang line selects the interpreter; the default is `sh`. */
export const InvokeScriptPayload = z
  .strictObject({
    script: z
      .string()
      .min(1)
      .max(maxScriptBytes)
      .refine((text) => new TextEncoder().encode(text).length <= maxScriptBytes, 'must be at most 256 KiB of UTF-8')
      .refine((text) => !text.includes('\0'), 'must not contain NUL characters')
      .meta({ description: 'At most 256 KiB of UTF-8', example: 'uname' }),
    targetNodeIds: z
      .array(z.string().max(200))
      .min(1)
      .max(5000)
      .optional()
      .meta({ description: 'Nodes to run on; absent means every node of the cluster' }),
    timeoutSeconds: z.int32().min(1).max(172_800).optional().meta({ description: 'Default 3600' }),
  })
  .meta({ id: 'InvokeScriptPayload' })

/** Ways to submit a job. Only `session` and `token` are in use. */
export const submissionMethods = ['session', 'token', 'serviceAccount', 'schedule', 'rollout'] as const

/** The user who submitted a job or a batch. `username` is the name at the time of submission. */
export const Submitter = z
  .object({
    id: z.string().max(40).meta({ example: 'user_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
    username: z.string().max(500).meta({ example: 'ann' }),
    via: z.enum(submissionMethods).meta({
      description:
        '`session` is a person who signed in, `token` an API token. The other values are reserved for later versions',
    }),
  })
  .meta({ id: 'Submitter' })

/** The name and reason of a job or a batch. */
export const purposeFields = {
  name: line(1, 100).optional().meta({ description: 'Short title, shown in lists', example: 'Rotate logs' }),
  reason: line(1, 500).optional().meta({ description: 'Why the script runs', example: 'Ticket 4711: disk is full' }),
}

/** A job of a batch. The payload is validated after the type, so that an unknown type returns 422 for any payload. */
export const BatchJob = z
  .strictObject({
    clusterId: z.string().min(1).max(200).meta({ example: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
    type: z.string().min(1).max(50).meta({ example: 'InvokeScript' }),
    payload: z.record(z.string(), z.unknown()).meta({
      description: 'Payload of the job type; InvokeScriptPayload for InvokeScript',
      example: { script: 'uname' },
      $ref: '#/components/schemas/InvokeScriptPayload',
    }),
    deliverWithinSeconds: z
      .int32()
      .min(1)
      .max(2_592_000)
      .optional()
      .meta({ description: 'Seconds that the job can wait for its relay; default 3600' }),
  })
  .meta({ id: 'BatchJob' })

export const JobSubmission = BatchJob.extend(purposeFields).meta({ id: 'JobSubmission' })

export const NodeResult = z
  .object({
    nodeId: z.string().max(40),
    exitCode: z.int32().nullable().meta({ description: 'null if the script did not exit by itself' }),
    output: z.string().max(1_048_576),
  })
  .meta({ id: 'NodeResult' })

/** Hash of all output of a job, as `OutputHash` computes it: SHA-256 in hex. */
export const outputSha256 = z
  .string()
  .max(64)
  .regex(/^[0-9a-f]{64}$/)
  .meta({ example: '5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03' })

/**
 * Result of an ended job. If `truncated`, `output` is about the first 256 KiB and the last 768 KiB, in whole lines. A
 * line with the number of dropped bytes marks the cut. `binary` means that bytes that are not valid UTF-8 were
 * replaced; `GET /jobs/{id}/output` returns the original bytes.
 */
export const JobResult = z
  .object({
    output: z.string().max(1_048_576),
    binary: z.literal(true).optional(),
    exitCode: z.int32().nullable(),
    nodes: z.array(NodeResult).max(2000),
    truncated: z.boolean(),
    totalBytes: z.int().min(0).meta({ description: 'Bytes that the scripts wrote, including dropped ones' }),
    outputSha256: outputSha256.optional().meta({
      description:
        'SHA-256 of all bytes that the scripts wrote. With several nodes or both streams, it is the SHA-256 of the line `streams` and the sorted SHA-256 sums of all nodes and streams, in hex, one per line. The platform computes it for up to 32 KiB of output. For more, it comes from the relay, and is absent if the relay reported none',
    }),
  })
  .meta({ id: 'JobResult' })

/** Result that the relay reported after the job had ended. It does not change the job's status. */
export const LateResult = z
  .object({ outcome: z.string().max(20), exitCode: z.int32().nullable(), reportedAt: timestamp })
  .meta({ id: 'LateResult' })

const acceptedFields = {
  id: id('job'),
  clusterId: id('clus').optional(),
  type: z.enum(jobTypes),
  createdAt: timestamp,
}

const attributionFields = {
  title: z.string().max(100).meta({
    description: 'The name, or else the first line of the script without comments and shell options, shortened',
    example: 'Rotate logs',
  }),
  name: z.string().max(100).optional().meta({ description: 'Name of the job, or of its batch' }),
  createdBy: Submitter,
}

const statusFields = {
  batchId: id('batch').optional().meta({ description: 'The batch of the job, if any' }),
  status: z.enum(jobStatuses),
  statusReason: z.enum(statusReasons).optional(),
  startedAt: timestamp.optional(),
  completedAt: timestamp.optional(),
  cancelRequestedAt: timestamp.optional(),
}

/** A step of a platform operation. Steps are listed in order of execution. */
export const JobStep = z
  .object({
    name: z.string().max(40).meta({ example: 'deploy' }),
    status: z.enum(['Pending', 'Running', 'Completed', 'Failed', 'Skipped']),
    message: z.string().max(1000).optional(),
    startedAt: timestamp.optional(),
    completedAt: timestamp.optional(),
  })
  .meta({ id: 'JobStep' })

/** A job in lists, without payload and result. */
export const JobSummary = z.object({ ...acceptedFields, ...attributionFields, ...statusFields }).meta({
  id: 'JobSummary',
  example: {
    id: 'job_01jd8w5k3zr9x2m4c7t6v0b1qa',
    clusterId: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa',
    type: 'InvokeScript',
    createdAt: '2026-11-21T09:30:00.000Z',
    title: 'Rotate logs',
    name: 'Rotate logs',
    createdBy: { id: 'user_01jd8w5k3zr9x2m4c7t6v0b1qa', username: 'ann', via: 'session' },
    status: 'Running',
    startedAt: '2026-11-21T09:30:01.000Z',
  },
})

export const AcceptedJob = z.object({ ...acceptedFields, status: z.literal('Queued') }).meta({ id: 'AcceptedJob' })

export const Job = z
  .object({
    ...acceptedFields,
    ...attributionFields,
    reason: z.string().max(500).optional().meta({ description: 'Reason for the job, or for its batch' }),
    ...statusFields,
    payload: z.record(z.string(), z.unknown()),
    expiresAt: timestamp.meta({ description: 'Time at which the job fails if no relay has claimed it' }),
    result: JobResult.optional(),
    lateResult: LateResult.optional(),
    steps: z.array(JobStep).max(20).optional().meta({ description: 'Progress of a platform operation' }),
  })
  .meta({
    id: 'Job',
    example: {
      id: 'job_01jd8w5k3zr9x2m4c7t6v0b1qa',
      clusterId: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa',
      type: 'InvokeScript',
      createdAt: '2026-11-21T09:30:00.000Z',
      title: 'Rotate logs',
      name: 'Rotate logs',
      createdBy: { id: 'user_01jd8w5k3zr9x2m4c7t6v0b1qa', username: 'ann', via: 'session' },
      reason: 'Ticket 4711: disk is full',
      payload: { script: 'uname' },
      status: 'Completed',
      startedAt: '2026-11-21T09:30:01.000Z',
      completedAt: '2026-11-21T09:30:02.000Z',
      expiresAt: '2026-11-21T10:30:00.000Z',
      result: {
        output: 'Linux\n',
        exitCode: 0,
        nodes: [{ nodeId: 'node_01jd8w5k3zr9x2m4c7t6v0b1qa', exitCode: 0, output: 'Linux\n' }],
        truncated: false,
        totalBytes: 6,
        outputSha256: '4828e60247c1636f57b7446a314e7f599c12b53d40061cc851a1442004354fed',
      },
    },
  })

export type BatchJob = z.infer<typeof BatchJob>
export type JobSubmission = z.infer<typeof JobSubmission>
export type Submitter = z.infer<typeof Submitter>
export type InvokeScriptPayload = z.infer<typeof InvokeScriptPayload>
export type AcceptedJob = z.infer<typeof AcceptedJob>
export type Job = z.infer<typeof Job>
export type JobResult = z.infer<typeof JobResult>
export type JobSummary = z.infer<typeof JobSummary>
export type JobStep = z.infer<typeof JobStep>

const params = z.object({ id: pathId('job') })

const JobPage = pageOf(JobSummary).extend({
  searchedAll: z.boolean().optional().meta({
    description:
      'With createdBy, name, since or until: whether the request searched all older jobs. If false, `totalCount` counts the matches so far, and the page of `nextCursor` continues the search',
  }),
})

const instant = z.iso
  .datetime({ offset: true })
  .max(40)
  .optional()
  .meta({ description: 'ISO 8601 with an offset', format: 'date-time', example: '2026-11-21T09:30:00.000Z' })

export const submitJob = createRoute({
  method: 'post',
  path: '/api/v1/jobs',
  access: 'jobs:write',
  tags: ['Jobs'],
  summary: 'Submit a job to a cluster',
  request: { body: jsonBody(JobSubmission) },
  responses: { 202: { description: 'Accepted; poll GET /jobs/{id}', content: json(AcceptedJob) } },
  errors: ['cluster_not_found', 'unknown_job_type', 'job_type_not_submittable', 'node_not_in_cluster', 'limit_reached'],
  capabilities: ['table:read', 'table:write', 'queue:events', 'channel:wake'],
})

export const getJob = createRoute({
  method: 'get',
  path: '/api/v1/jobs/{id}',
  access: 'jobs:read',
  tags: ['Jobs'],
  summary: 'One job with its status and result',
  request: { params },
  responses: { 200: { description: 'The job', content: json(Job) } },
  errors: ['job_not_found'],
  capabilities: ['table:read'],
})

export const listJobs = createRoute({
  method: 'get',
  path: '/api/v1/jobs',
  access: 'jobs:read',
  tags: ['Jobs'],
  summary: 'The jobs of the organisation, newest first',
  description:
    'A filter by createdBy or name considers 1,000 jobs per request and one by time 10,000, starting from the newest or from the cursor; with status Queued or Running, also at most the jobs of 100 batches. See `searchedAll`. Without batchId, a job of a batch matches the status Running one to two seconds after its start.',
  request: {
    query: z.strictObject({
      clusterId: z.string().max(200).optional().meta({ description: 'Only jobs of this cluster' }),
      status: z.enum(jobStatuses).optional(),
      type: z.enum(jobTypes).optional(),
      batchId: z.string().max(200).optional().meta({ description: 'Only jobs of this batch' }),
      createdBy: z.string().max(500).optional().meta({ description: 'Id or username of the submitter' }),
      name: z.string().max(100).optional().meta({ description: 'Part of the title, case-insensitive' }),
      since: instant.meta({ description: 'Only jobs that were submitted at this time or later' }),
      until: instant.meta({ description: 'Only jobs that were submitted before this time' }),
      ...paging,
    }),
  },
  responses: { 200: { description: 'A page of jobs', content: json(JobPage) } },
  capabilities: ['table:read'],
})

export const cancelJob = createRoute({
  method: 'post',
  path: '/api/v1/jobs/{id}/cancel',
  access: 'jobs:write',
  tags: ['Jobs'],
  summary: 'Cancel a job',
  description:
    'A queued job is cancelled immediately. A running job is cancelled when its relay confirms, or after 60 seconds.',
  request: { params },
  responses: { 202: { description: 'The current state of the job', content: json(Job) } },
  errors: ['job_not_found', 'job_already_finished', 'job_not_cancellable', 'conflict'],
  capabilities: ['table:read', 'table:write', 'queue:events', 'channel:wake'],
})
