import * as z from 'zod'
import { id, line, pathId, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'
import { outputStreams } from './job-output.ts'

/**
 * The relay protocol of D21. Every call but enroll carries `Authorization: Relay <JWT>`: EdDSA by the relay's key; header
 * `kid` = relay id; claims `aud` = `platform-relay`, `iat`, `exp` (at most 60 s later), `jti` (fresh each time), `path` (of
 * the request, from `/api` on) and `bodySha256` (base64url, of the exact bytes).
 */

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

/** A key set: the public keys that verify something, by `kid`. */
export const KeySet = z
  .object({
    keys: z
      .array(Ed25519PublicKey.extend({ kid: z.string().max(100), alg: z.literal('EdDSA'), use: z.literal('sig') }))
      .max(10),
  })
  .meta({ id: 'KeySet' })

const nodeNameBytes = 196_608
const jsonBytes = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length

export const EnrollRequest = z
  .object({
    enrollmentToken: z.string().min(1).max(200),
    publicKey: Ed25519PublicKey,
    displayName: line(1, 64),
    hostname: line(1, 255),
    platform: line(1, 64),
    relayVersion: line(1, 64),
    nodes: z
      .array(z.object({ name: line(1, 64) }))
      .min(1)
      .max(2000)
      // All nodes of a cluster are kept in one item of the store.
      .refine((nodes) => jsonBytes(nodes) <= nodeNameBytes, 'names must be at most 192 KiB together'),
  })
  .meta({ id: 'EnrollRequest' })

export const EnrollResponse = z
  .object({
    relayId: id('relay'),
    clusterId: id('clus'),
    heartbeatIntervalSeconds: z.int32().min(1).max(3600),
    serverTime: timestamp,
    keys: KeySet.meta({ description: 'Keys that sign job statements; pin them' }),
    nodes: z
      .array(z.object({ id: id('node'), name: z.string().max(64) }))
      .max(2000)
      .meta({ description: 'The ids of the nodes, in the order of the request' }),
  })
  .meta({ id: 'EnrollAnswer' })

export const Heartbeat = z
  .object({
    nodes: z
      .array(z.object({ id: z.string().max(40), status: z.enum(['Online', 'Offline']) }))
      .max(2000)
      .meta({ description: 'Every node; one that is left out counts as Offline' }),
    running: z.array(z.string().max(40)).max(1000),
    freeSlots: z.int32().min(0).max(1000),
  })
  .meta({ id: 'Heartbeat' })

export const HeartbeatResponse = z
  .object({
    heartbeatIntervalSeconds: z.int32().min(1).max(3600),
    jobs: z.array(z.string().max(40)).max(1000).meta({ description: 'Jobs to claim, oldest first' }),
    cancel: z.array(z.string().max(40)).max(1000).meta({ description: 'Running jobs to stop' }),
    serverTime: timestamp,
  })
  .meta({ id: 'HeartbeatAnswer' })

export const Claim = z
  .object({
    leaseId: id('lease'),
    leaseExpiresAt: timestamp,
    statement: z.string().max(4000).meta({ description: 'JWS over jobId, clusterId, payloadSha256, exp (D24)' }),
    payload: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Claim' })

/** The most bytes of UTF-8 that one output call carries. */
export const outputChunkBytes = 65_536

export const OutputReport = z
  .object({
    leaseId: z.string().max(40),
    seq: z.int32().min(0).meta({ description: 'Counts the output calls of a job from 0' }),
    nodeId: id('node'),
    stream: z.enum(outputStreams),
    data: z
      .string()
      .min(1)
      .max(outputChunkBytes)
      .refine(
        (text) => new TextEncoder().encode(text).length <= outputChunkBytes,
        'must be at most 65536 bytes of UTF-8',
      ),
  })
  .meta({ id: 'OutputReport' })

export const OutputResponse = z.object({ nextSeq: z.int32().min(0), cancel: z.boolean() }).meta({ id: 'OutputAnswer' })

/** How a run ended: by itself, at its time limit, by a cancel, refused before it began, or cut short by a restart. */
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
  })
  .meta({ id: 'Completion' })

export const CompletionResponse = z
  .object({ jobId: id('job'), status: z.enum(['Completed', 'Failed', 'Cancelled']) })
  .meta({ id: 'CompletionAnswer' })

export const Goodbye = z.object({ reason: line(0, 200) }).meta({ id: 'Goodbye' })

export type EnrollRequest = z.infer<typeof EnrollRequest>
export type EnrollResponse = z.infer<typeof EnrollResponse>
export type Heartbeat = z.infer<typeof Heartbeat>
export type HeartbeatResponse = z.infer<typeof HeartbeatResponse>
export type Claim = z.infer<typeof Claim>
export type OutputReport = z.infer<typeof OutputReport>
export type OutputResponse = z.infer<typeof OutputResponse>
export type Completion = z.infer<typeof Completion>
export type CompletionResponse = z.infer<typeof CompletionResponse>
export type KeySet = z.infer<typeof KeySet>

const params = z.object({ id: pathId('job') })
const readWrite = ['table:read', 'table:write', 'queue:events'] as const

export const enroll = endpoint({
  method: 'POST',
  path: '/api/v1/relay/enroll',
  access: 'public',
  tag: 'Relay protocol',
  summary: 'Trade an enrollment token for a relay identity',
  description: 'The same token with the same key answers the same again for ten minutes.',
  request: { body: EnrollRequest },
  responses: { 201: { description: 'Enrolled', schema: EnrollResponse } },
  fails: ['enrollment_token_invalid', 'enrollment_token_expired', 'enrollment_token_used'],
  uses: [...readWrite, 'secret:signing-keys'],
})

export const heartbeat = endpoint({
  method: 'POST',
  path: '/api/v1/relay/heartbeat',
  access: 'relay',
  tag: 'Relay protocol',
  summary: 'Report presence, learn of work',
  description:
    'With `Prefer: wait=<seconds>` the answer may be held back until there is work; the header `Preference-Applied: wait` says so, and the relay then beats again at once.',
  request: { body: Heartbeat },
  responses: { 200: { description: 'Work to do', schema: HeartbeatResponse } },
  uses: readWrite,
})

export const claimJob = endpoint({
  method: 'POST',
  path: '/api/v1/relay/jobs/{id}/claim',
  access: 'relay',
  tag: 'Relay protocol',
  summary: 'Take a job',
  description: 'Repeated with the same `Idempotency-Key` it answers the same again, for a claim whose answer was lost.',
  request: { params },
  responses: { 200: { description: 'The job is leased to this relay', schema: Claim } },
  fails: ['job_not_found', 'job_not_claimable'],
  uses: [...readWrite, 'secret:signing-keys'],
})

export const reportOutput = endpoint({
  method: 'POST',
  path: '/api/v1/relay/jobs/{id}/output',
  access: 'relay',
  tag: 'Relay protocol',
  summary: 'Append output',
  description: 'The same seq twice is a no-op.',
  request: { params, body: OutputReport },
  responses: { 200: { description: 'Kept', schema: OutputResponse } },
  fails: ['job_not_found', 'lease_not_held', 'job_already_finished', 'output_out_of_order'],
  uses: ['table:read', 'table:write'],
})

export const completeJob = endpoint({
  method: 'POST',
  path: '/api/v1/relay/jobs/{id}/complete',
  access: 'relay',
  tag: 'Relay protocol',
  summary: 'Report how a job ended',
  description: 'Repeating answers the same. After another terminal state 409, and the report is kept as lateResult.',
  request: { params, body: Completion },
  responses: { 200: { description: 'The job has ended', schema: CompletionResponse } },
  fails: ['job_not_found', 'lease_not_held', 'job_already_finished'],
  uses: readWrite,
})

export const goodbye = endpoint({
  method: 'POST',
  path: '/api/v1/relay/goodbye',
  access: 'relay',
  tag: 'Relay protocol',
  summary: 'The relay stops',
  request: { body: Goodbye },
  responses: { 204: { description: 'The cluster is Offline' } },
  uses: readWrite,
})
