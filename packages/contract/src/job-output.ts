import * as z from 'zod'
import { pathId, timestamp } from './common.ts'
import { createRoute, json } from './endpoint.ts'
import { jobStatuses } from './job.ts'

export const outputStreams = ['stdout', 'stderr'] as const

/**
 * A range of live output. Ranges are in order of arrival. `offset` counts the bytes of the job's output before it,
 * including those that were dropped. `data` is text, or Base64 if the bytes are not valid UTF-8.
 */
export const OutputChunk = z
  .object({
    offset: z.int().min(0),
    nodeId: z.string().max(40).meta({ example: 'node_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
    stream: z.enum(outputStreams),
    data: z.string().max(131_072).meta({ example: 'Linux\n' }),
    encoding: z.literal('base64').optional(),
    at: timestamp.optional().meta({
      description: 'Time at which the platform received it; absent if it is the time of the item before',
    }),
  })
  .meta({ id: 'OutputChunk' })

export const JobOutput = z
  .object({
    items: z.array(OutputChunk).max(10_000),
    nextOffset: z.int().min(0).meta({ description: 'Pass it as `offset` to continue', example: 6 }),
    status: z.enum(jobStatuses).meta({ example: 'Running' }),
    finished: z
      .boolean()
      .meta({ description: 'Whether the job has ended and no output follows nextOffset', example: false }),
  })
  .meta({ id: 'JobOutput' })

export type JobOutput = z.infer<typeof JobOutput>
export type OutputChunk = z.infer<typeof OutputChunk>

export const getJobOutput = createRoute({
  method: 'get',
  path: '/api/v1/jobs/{id}/output',
  access: 'jobs:read',
  tags: ['Jobs'],
  summary: 'Live output from an offset',
  description:
    'The response never waits for output. To watch a job, ask again from `nextOffset` after a pause: at most a second while output arrives, growing to five seconds while there is none. With `Accept: application/octet-stream` the response is the bytes of the output; a line marks each part that was dropped. `X-Next-Offset` is the offset to continue at, and `Link` with `rel="next"` shows that more output is available now.',
  request: {
    params: z.object({ id: pathId('job') }),
    query: z.strictObject({
      offset: z
        .string()
        .regex(/^[0-9]{1,15}$/, 'must be a whole number from 0')
        .transform(Number)
        .optional()
        .transform((value) => value ?? 0)
        .meta({
          description: 'Bytes to skip',
          type: 'integer',
          format: 'int64',
          minimum: 0,
          maximum: 999_999_999_999_999,
          default: 0,
        }),
      waitSeconds: z
        .string()
        .regex(/^([0-9]|1[0-9]|20)$/, 'must be a whole number from 0 to 20')
        .transform(Number)
        .optional()
        .transform((value) => value ?? 0)
        .meta({
          description: 'Accepted for compatibility and ignored: the response never waits for output',
          deprecated: true,
          type: 'integer',
          format: 'int32',
          minimum: 0,
          maximum: 20,
          default: 0,
        }),
    }),
  },
  responses: {
    200: {
      description: 'Output from the offset',
      content: { ...json(JobOutput), 'application/octet-stream': {} },
    },
  },
  errors: ['job_not_found'],
  capabilities: ['table:read'],
})
