import * as z from 'zod'
import { id, jsonBytes, line, pathId, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { FactsReport } from './facts.ts'
import { outputSha256 } from './job.ts'
import { outputStreams } from './job-output.ts'

// The relay protocol. Every request except enrollment has the header `Authorization: Relay <JWT>`. The relay signs the
// JWT with its key (EdDSA); header `kid` = relay id; claims `aud` = `platform-relay`, `iat`, `exp` (at most 60 s
// later), `jti` (unique), `path` (from `/api` on) and `bodySha256` (base64url, of the exact bytes).

const Ed25519PublicKey = z
  .object({
    kty: z.literal('OKP'),
    crv: z.literal('Ed25519'),
    x: z
      .string()
      .max(43)
      .regex(/^[A-Za-z0-9_-]{43}$/),
  })
  .meta({ id: 'Ed25519PublicKey' })

/** A JSON Web Key that verifies signatures of the platform. */
export const PublicKey = Ed25519PublicKey.extend({
  kid: z.string().max(100),
  alg: z.literal('EdDSA'),
  use: z.literal('sig'),
}).meta({ id: 'PublicKey' })

/** A JSON Web Key Set of public keys. */
export const KeySet = z.object({ keys: z.array(PublicKey).max(10) }).meta({ id: 'KeySet' })

const maxNodeNameBytes = 196_608

export const EnrollRequest = z
  .object({
    enrollmentToken: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .meta({ description: 'Enrollment token of the cluster. Either this or `enrollmentKey` is required' }),
    enrollmentKey: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .meta({ description: 'Enrollment key, instead of `enrollmentToken`. The enrollment creates a cluster' }),
    publicKey: Ed25519PublicKey,
    displayName: line(1, 64),
    hostname: line(1, 255),
    platform: line(1, 64),
    relayVersion: line(1, 64),
    nodes: z
      .array(z.object({ name: line(1, 64) }))
      .min(1)
      .max(2000)
      // All nodes of a cluster are stored in one item, whose size is limited.
      .refine((nodes) => jsonBytes(nodes) <= maxNodeNameBytes, 'names must be at most 192 KiB together'),
  })
  .refine(({ enrollmentToken, enrollmentKey }) => (enrollmentToken === undefined) !== (enrollmentKey === undefined), {
    message: 'is required without enrollmentKey, and must be absent with it',
    path: ['enrollmentToken'],
  })
  .meta({ id: 'EnrollRequest' })

export const EnrollResponse = z
  .object({
    relayId: id('relay'),
    clusterId: id('clus'),
    heartbeatIntervalSeconds: z.int32().min(1).max(3600),
    serverTime: timestamp,
    keys: KeySet,
    nodes: z
      .array(z.object({ id: id('node'), name: z.string().max(64) }))
      .max(2000)
      .meta({ description: 'Node identifiers, in the order of the request' }),
  })
  .meta({ id: 'EnrollAnswer' })

const statementKey = z
  .string()
  .max(100)
  .optional()
  .meta({ description: '`kid` of the newest key of job statements that the relay trusts' })

const statementKeys = z.array(z.string().max(1000)).max(10).optional()

export const Heartbeat = z
  .object({
    nodes: z
      .array(z.object({ id: z.string().max(40), status: z.enum(['Online', 'Offline']) }))
      .max(2000)
      .meta({ description: 'All nodes; a missing node counts as Offline' }),
    running: z.array(z.string().max(40)).max(1000),
    freeSlots: z.int32().min(0).max(1000),
    statementKey,
    instanceId: z
      .string()
      .max(40)
      .regex(/^[0-9A-Za-z-]{8,40}$/)
      .optional()
      .meta({ description: 'Random, new at each start. Alternating values show that two relays use one key' }),
    scriptsIsolated: z.boolean().optional().meta({ description: 'Whether scripts cannot read the key of the relay' }),
    factsHash: z
      .string()
      .max(40)
      .regex(/^[0-9A-Za-z-]{8,40}$/)
      .optional()
      .meta({ description: 'Changes with the facts of the relay and its nodes; absent if it collects none' }),
    facts: FactsReport.optional().meta({
      description: 'Send them if the previous response had `wantsFacts`; requires `factsHash`',
    }),
    channel: z
      .enum(['open', 'closed'])
      .optional()
      .meta({ description: 'State of the control channel; absent if the relay does not use one' }),
    claimKey: z
      .string()
      .max(40)
      .regex(/^[0-9A-Za-z-]{8,40}$/)
      .optional()
      .meta({
        description:
          'Claims jobs for the free slots with this request. The same key returns the same claims again, in case the response was lost; use another one after the claims are stored',
      }),
    update: z
      .object({
        id: z.string().max(40),
        status: z.enum(['pending', 'completed', 'rolledBack', 'skipped']),
        reason: z.string().max(200).optional(),
      })
      .optional()
      .meta({
        description:
          'Progress of the update that the last response offered. `rolledBack`: the relay runs its previous version again, and tries the same file only for another update. `skipped`: the relay cannot verify the file, or runs a later version',
      }),
  })
  .meta({ id: 'Heartbeat' })

/** The settings of a control channel, which uses MQTT 3.1.1 over WebSocket with the subprotocol `mqtt`. */
export const Channel = z
  .object({
    url: z.string().max(500).meta({
      description: 'A wss URL, or a path on the host of the platform, with the protocol of its URL',
      example: '/channel',
    }),
    clientId: z.string().max(128),
    topic: z.string().max(200).meta({ description: 'The only topic that the relay may subscribe to' }),
    username: z.string().max(500).meta({
      description:
        'User name of the MQTT connection. Its password is a JWT as in requests, with `path` = `mqtt:` and the client identifier, and without `bodySha256`',
    }),
    keepAliveSeconds: z.int32().min(5).max(1200),
  })
  .meta({ id: 'Channel' })

export const ClaimRequest = z.object({ statementKey }).meta({ id: 'ClaimRequest' })

export const Claim = z
  .object({
    leaseId: id('lease'),
    leaseExpiresAt: timestamp,
    statement: z.string().max(4000).meta({ description: 'JWS over jobId, clusterId, payloadSha256, exp' }),
    statementKeys: statementKeys.meta({ description: 'As in the response to a heartbeat' }),
    payload: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Claim' })

export const HeartbeatResponse = z
  .object({
    heartbeatIntervalSeconds: z.int32().min(1).max(3600),
    jobs: z.array(z.string().max(40)).max(1000).meta({ description: 'Jobs to claim, oldest first' }),
    cancel: z.array(z.string().max(40)).max(1000).meta({ description: 'Running jobs to stop' }),
    claims: z
      .array(Claim.omit({ statementKeys: true }).extend({ jobId: id('job') }))
      .max(100)
      .optional()
      .meta({ description: 'Claimed jobs, oldest first. Present if the request has a `claimKey`' }),
    moreJobs: z
      .boolean()
      .optional()
      .meta({ description: 'Whether more jobs wait. Send a heartbeat when a slot is free' }),
    wantsFacts: z
      .literal(true)
      .optional()
      .meta({ description: 'The platform has no facts with this `factsHash`: send them with the next heartbeat' }),
    channel: Channel.optional().meta({
      description: 'Present if the request has `channel` and the platform offers a control channel',
    }),
    statementKeys: statementKeys.meta({
      description:
        'Sent if `statementKey` was replaced: the keys that follow it, oldest first, each as a JWS (`typ` statement-key+jws, claims `key` and `iat`) that the key before it has signed. Empty if no keys lead from it: enroll the relay again.',
    }),
    update: z
      .object({
        id: z.string().max(40),
        version: z.string().max(64),
        sha256: z.string().max(64),
        signature: z.string().max(1000).meta({ description: 'Signature by the release key, in Base64' }),
      })
      .optional()
      .meta({ description: 'Version that the relay installs. Download the file from `/relay/relay.mjs`' }),
    serverTime: timestamp,
  })
  .meta({ id: 'HeartbeatAnswer' })

/** Maximum size of the output in one request, in bytes. */
export const maxOutputCallBytes = 65_536

/** Output of one node and stream. `data` is text, or Base64 of bytes that are not valid UTF-8. */
export const OutputPiece = z
  .object({
    nodeId: id('node'),
    stream: z.enum(outputStreams),
    data: z
      .string()
      .min(1)
      .max(4 * Math.ceil(maxOutputCallBytes / 3)),
    encoding: z.literal('base64').optional(),
    droppedBytes: z
      .int()
      .min(0)
      .max(2 ** 40)
      .optional()
      .meta({ description: 'Bytes of the output of the job that the relay dropped before this chunk; default 0' }),
  })
  .refine(({ data, encoding }) => encoding === undefined || isBase64(data), {
    message: 'must be Base64',
    path: ['data'],
  })
  .meta({ id: 'OutputPiece' })

const isBase64 = (text: string): boolean =>
  /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)

const sizeOf = (data = '', encoding?: 'base64'): number =>
  encoding === undefined ? new TextEncoder().encode(data).length : (data.replace(/=+$/, '').length * 3) >> 2

const piecesSize = (pieces: readonly z.infer<typeof OutputPiece>[] = []): number =>
  pieces.reduce((total, { data, encoding }) => total + sizeOf(data, encoding), 0)

const OutputSeq = z.int32().min(0).meta({ description: 'Sequence number of the output call of a job, from 0' })
const OutputPieces = z.array(OutputPiece).min(1).max(1000)

export const OutputReport = z
  .object({
    leaseId: z.string().max(40),
    seq: OutputSeq,
    chunks: OutputPieces.optional().meta({
      description:
        'In order of arrival; at most 65,536 bytes together. Send at most one call per second, or per 65,536 bytes.',
    }),
    nodeId: OutputPiece.shape.nodeId.optional().meta({ description: 'Instead of chunks: the node of a single chunk' }),
    stream: OutputPiece.shape.stream.optional().meta({ description: 'Instead of chunks' }),
    data: OutputPiece.shape.data.optional().meta({ description: 'Instead of chunks: text' }),
  })
  .refine(
    ({ chunks, nodeId, stream, data }) =>
      chunks !== undefined || (nodeId !== undefined && stream !== undefined && data !== undefined),
    { message: 'must be given', path: ['chunks'] },
  )
  .refine(({ chunks, data }) => piecesSize(chunks) + sizeOf(data) <= maxOutputCallBytes, {
    message: 'must be at most 65536 bytes together',
    path: ['chunks'],
  })
  .meta({ id: 'OutputReport' })

export const OutputResponse = z.object({ nextSeq: z.int32().min(0), cancel: z.boolean() }).meta({ id: 'OutputAnswer' })

/** How a run ended. `rejected`: the run did not start. `interrupted`: the relay stopped before the run ended. */
export const outcomes = ['exited', 'timed_out', 'cancelled', 'rejected', 'interrupted'] as const
export type Outcome = (typeof outcomes)[number]

export const Completion = z
  .object({
    leaseId: z.string().max(40),
    outcome: z.enum(outcomes),
    exitCode: z
      .int32()
      .nullable()
      .meta({ description: 'First non-zero exit code of the nodes, else 0; null if none exited' }),
    nodes: z.array(z.object({ nodeId: id('node'), exitCode: z.int32().nullable() })).max(2000),
    output: z.object({ seq: OutputSeq, chunks: OutputPieces }).optional().meta({
      description: 'The rest of the output, instead of a last output call. It has no effect if `seq` is stored',
    }),
    outputSha256: outputSha256.optional().meta({
      description:
        'Hash of all output, including dropped bytes, as in the result of a job. Ignored for up to 32 KiB of output',
    }),
  })
  .refine(({ output }) => piecesSize(output?.chunks) <= maxOutputCallBytes, {
    message: 'must be at most 65536 bytes together',
    path: ['output', 'chunks'],
  })
  .meta({ id: 'Completion' })

export const CompletionResponse = z
  .object({ jobId: id('job'), status: z.enum(['Completed', 'Failed', 'Cancelled']) })
  .meta({ id: 'CompletionAnswer' })

/** Maximum number of reports in one request. */
export const maxCompletions = 10

/** The report of a result, with the job to which it belongs. */
export const JobCompletion = Completion.safeExtend({ jobId: id('job') }).meta({ id: 'JobCompletion' })

/** Reports for different jobs: at most `maxCompletions`, with at most `maxOutputCallBytes` of output in total. */
export const CompletionsRequest = z
  .object({ completions: z.array(JobCompletion).min(1).max(maxCompletions) })
  .refine(({ completions }) => new Set(completions.map(({ jobId }) => jobId)).size === completions.length, {
    message: 'must contain each job at most once',
    path: ['completions'],
  })
  .refine(
    ({ completions }) => piecesSize(completions.flatMap(({ output }) => output?.chunks ?? [])) <= maxOutputCallBytes,
    { message: 'must contain at most 65536 bytes of output in total', path: ['completions'] },
  )
  .meta({ id: 'CompletionsRequest' })

/** Error codes with which the platform rejects the report of a result. Repeating the same report does not help. */
export const rejections = ['job_not_found', 'lease_not_held', 'job_already_finished', 'output_out_of_order'] as const

/** The response to one report: either `status` or `error`. */
export const CompletionResult = z
  .object({
    jobId: id('job'),
    status: CompletionResponse.shape.status.optional().meta({
      description: 'Final status of the job. Present if the platform accepted the report',
    }),
    error: z.enum(rejections).optional().meta({
      description: 'Error code, as from `POST /relay/jobs/{id}/complete`. Present if the platform rejected the report',
    }),
  })
  .meta({ id: 'CompletionResult' })

/** The responses to the reports of one request. Ends before a job that other requests changed too often. */
export const CompletionsResponse = z
  .object({ results: z.array(CompletionResult).max(maxCompletions) })
  .meta({ id: 'CompletionsAnswer' })

export const Goodbye = z.object({ reason: line(0, 200) }).meta({ id: 'Goodbye' })

export type EnrollRequest = z.infer<typeof EnrollRequest>
export type EnrollResponse = z.infer<typeof EnrollResponse>
export type Channel = z.infer<typeof Channel>
export type Heartbeat = z.infer<typeof Heartbeat>
export type HeartbeatResponse = z.infer<typeof HeartbeatResponse>
export type ClaimRequest = z.infer<typeof ClaimRequest>
export type Claim = z.infer<typeof Claim>
export type OutputPiece = z.infer<typeof OutputPiece>
export type OutputReport = z.infer<typeof OutputReport>
export type OutputResponse = z.infer<typeof OutputResponse>
export type Completion = z.infer<typeof Completion>
export type CompletionResponse = z.infer<typeof CompletionResponse>
export type JobCompletion = z.infer<typeof JobCompletion>
export type CompletionsRequest = z.infer<typeof CompletionsRequest>
export type CompletionResult = z.infer<typeof CompletionResult>
export type CompletionsResponse = z.infer<typeof CompletionsResponse>
export type KeySet = z.infer<typeof KeySet>

const params = z.object({ id: pathId('job') })
const readWrite = ['table:read', 'table:write', 'queue:events'] as const

export const enroll = createRoute({
  method: 'post',
  path: '/api/v1/relay/enroll',
  access: 'public',
  tags: ['Relay protocol'],
  summary: 'Exchange an enrollment token for a relay identity',
  description:
    'The same token and key return the same result for ten minutes. Pin `keys`: they sign job statements, and their successors.',
  request: { body: jsonBody(EnrollRequest) },
  responses: { 201: { description: 'Enrolled', content: json(EnrollResponse) } },
  errors: [
    'enrollment_token_invalid',
    'enrollment_token_expired',
    'enrollment_token_used',
    'enrollment_key_invalid',
    'enrollment_key_expired',
    'enrollment_key_used_up',
    'unknown_site',
    'limit_reached',
    'conflict',
  ],
  capabilities: [...readWrite, 'secret:statement-keys', 'channel:wake'],
  // This is enough for 2,000 nodes.
  maxBodyBytes: 384 * 1024,
})

export const heartbeat = createRoute({
  method: 'post',
  path: '/api/v1/relay/heartbeat',
  access: 'relay',
  tags: ['Relay protocol'],
  summary: 'Report presence and receive work',
  request: { body: jsonBody(Heartbeat) },
  responses: { 200: { description: 'Work to do', content: json(HeartbeatResponse) } },
  capabilities: [...readWrite, 'secret:statement-keys'],
})

export const claimJob = createRoute({
  method: 'post',
  path: '/api/v1/relay/jobs/{id}/claim',
  access: 'relay',
  tags: ['Relay protocol'],
  summary: 'Claim a job',
  description: 'A retry with the same `Idempotency-Key` returns the same result, in case the response was lost.',
  request: { params, body: jsonBody(ClaimRequest) },
  responses: { 200: { description: 'The job is leased to this relay', content: json(Claim) } },
  errors: ['job_not_found', 'job_not_claimable', 'statement_key_unknown'],
  capabilities: [...readWrite, 'secret:statement-keys'],
})

export const reportOutput = createRoute({
  method: 'post',
  path: '/api/v1/relay/jobs/{id}/output',
  access: 'relay',
  tags: ['Relay protocol'],
  summary: 'Append output',
  description:
    'Repeating a `seq` has no effect. A job may send 1 MiB per second, and a call counts as 64 KiB at least; beyond that the response is 429.',
  request: { params, body: jsonBody(OutputReport) },
  responses: { 200: { description: 'Stored', content: json(OutputResponse) } },
  errors: ['job_not_found', 'lease_not_held', 'job_already_finished', 'output_out_of_order'],
  capabilities: ['table:read', 'table:write'],
})

export const completeJob = createRoute({
  method: 'post',
  path: '/api/v1/relay/jobs/{id}/complete',
  access: 'relay',
  tags: ['Relay protocol'],
  summary: 'Report the result of a job',
  description:
    'A retry returns the same result. Returns 409 if the job has another terminal status; the report is then stored as lateResult.',
  request: { params, body: jsonBody(Completion) },
  responses: { 200: { description: 'The job has ended', content: json(CompletionResponse) } },
  errors: [...rejections],
  capabilities: readWrite,
})

export const completeJobs = createRoute({
  method: 'post',
  path: '/api/v1/relay/completions',
  access: 'relay',
  tags: ['Relay protocol'],
  summary: 'Report the results of several jobs',
  description:
    'Has the same effect as `POST /relay/jobs/{id}/complete` for each job, with fewer writes if possible. The status of the response is 200 even if the platform rejects reports: see `error`. A repeated request returns the same results. Report a job without a result again.',
  request: { body: jsonBody(CompletionsRequest) },
  responses: { 200: { description: 'The response to each report', content: json(CompletionsResponse) } },
  capabilities: readWrite,
})

export const goodbye = createRoute({
  method: 'post',
  path: '/api/v1/relay/goodbye',
  access: 'relay',
  tags: ['Relay protocol'],
  summary: 'Report that the relay stops',
  request: { body: jsonBody(Goodbye) },
  responses: { 204: { description: 'The cluster is Offline' } },
  capabilities: readWrite,
})
