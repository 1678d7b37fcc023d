import * as z from 'zod'
import { id, line, pageOf, paging, timestamp } from './common.ts'
import { createRoute, json, jsonBody } from './endpoint.ts'
import { PublicKey } from './relay.ts'

const sequence = z.int().min(0)
const hash = z.string().max(64).meta({ example: 'bd1f0c2c9c2ab4f2a1e3b5d4c6f7089a1b2c3d4e5f60718293a4b5c6d7e8f901' })

/** Author of an entry. `id` is a user id, a relay id, or `system`. */
export const AuditActor = z
  .object({
    kind: z.enum(['user', 'relay', 'system']),
    id: z.string().max(40),
    tokenId: id('tok').optional().meta({ description: 'The API token of the request' }),
  })
  .meta({ id: 'AuditActor', example: { kind: 'user', id: 'user_01jd8w5k3zr9x2m4c7t6v0b1qa' } })

// The hash of an entry covers these fields.
const content = {
  id: id('aud'),
  seq: sequence.meta({ description: 'Position in the organisation’s chain, from 1 without gaps', example: 1 }),
  at: timestamp.meta({ description: 'Time of the entry; never decreases along the chain' }),
  actor: AuditActor,
  action: z.string().max(100).meta({ example: 'cluster.register' }),
  resource: z.string().max(200).meta({ example: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
  detail: z.string().max(2000).meta({ example: 'berlin-1' }),
  address: z.string().max(64).optional().meta({ description: 'IP address of the request' }),
  traceId: z.string().max(32),
  extra: z.literal(true).optional().meta({ description: 'Written by a caller, not by the platform' }),
  previousHash: hash.meta({
    description: 'Hash of the previous entry; for the first entry, the SHA-256 of the organisation’s id',
  }),
}

export const AuditEntry = z.object({ ...content, hash }).meta({
  id: 'AuditEntry',
  description:
    '`hash` is the SHA-256, in lower-case hex, of the entry without `hash` as canonical JSON (RFC 8785) in UTF-8. `previousHash` is the `hash` of the previous entry; for the first entry it is the SHA-256 of the organisation’s id.',
})
export type AuditEntry = z.infer<typeof AuditEntry>

const text = z
  .string()
  .max(2000)
  .refine((value) => value.isWellFormed(), 'must be well-formed text')
  // Tabs and line breaks are allowed. Other control characters could affect the terminal that shows the audit trail.
  // oxlint-disable-next-line no-control-regex
  .regex(/^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028\u2029]*$/, 'must not contain control characters')

export const AuditEntryRequest = z
  .strictObject({
    action: line(1, 100).meta({ example: 'change.approved' }),
    resource: line(1, 200).meta({ example: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
    detail: text.meta({ example: 'Approved by the change board' }),
  })
  .meta({ id: 'AuditEntryRequest' })
export type AuditEntryRequest = z.infer<typeof AuditEntryRequest>

export const addAuditEntry = createRoute({
  method: 'post',
  path: '/api/v1/platform/audit',
  access: 'platform:admin',
  tags: ['Audit'],
  summary: 'Add an audit entry',
  description:
    'The platform records its own changes. Use this endpoint for changes outside the platform. Such entries have `extra` set.',
  request: { body: jsonBody(AuditEntryRequest) },
  responses: { 204: { description: 'Accepted; the entry is added to the chain asynchronously' } },
  capabilities: ['table:write', 'queue:events'],
})

const timeFilter = (description: string) =>
  z.iso
    .datetime({ offset: true })
    .transform((value) => Math.max(0, Date.parse(value)))
    .optional()
    .meta({ description, type: 'string', format: 'date-time', maxLength: 40 })

const filters = {
  actor: z.string().max(40).optional().meta({ description: 'Only entries of this user, relay or `system`' }),
  action: z.string().max(100).optional().meta({ description: 'Only this action', example: 'cluster.delete' }),
  resource: z.string().max(200).optional().meta({ description: 'Only entries about this resource' }),
  from: timeFilter('Only entries of this time or later'),
  to: timeFilter('Only entries before this time'),
}

export const listAuditEntries = createRoute({
  method: 'get',
  path: '/api/v1/platform/audit',
  access: 'audit:read',
  tags: ['Audit'],
  summary: 'The audit trail of the organisation, newest first',
  description: 'Entries are found by actor, action and resource within a second of joining the chain.',
  request: { query: z.strictObject({ ...filters, ...paging }) },
  responses: { 200: { description: 'A page of entries', content: json(pageOf(AuditEntry)) } },
  capabilities: ['table:read'],
})

const after = z
  .string()
  .regex(/^(0|[1-9][0-9]{0,11})$/, 'must be a whole number')
  .transform(Number)
  .optional()
  .transform((value) => value ?? 0)
  .meta({
    description: 'Start after this sequence number',
    type: 'integer',
    format: 'int64',
    minimum: 0,
    maximum: 999_999_999_999,
    default: 0,
  })

export const auditFormats = ['ndjson', 'csv'] as const

export const exportAudit = createRoute({
  method: 'get',
  path: '/api/v1/platform/audit/export',
  access: 'audit:read',
  tags: ['Audit'],
  summary: 'The audit trail as a file, oldest first, in parts',
  description:
    'A part holds up to 1 MB. If more follows, the `Link` header names the next part (`rel="next"`); concatenate the parts to get the file. NDJSON has one entry per line. CSV follows RFC 4180 with a header row in the first part; a cell that begins with `=`, `+`, `-`, `@`, a tab, a carriage return or an apostrophe is prefixed with an apostrophe, because spreadsheets would treat it as a formula. Remove that prefix before verifying. The header `Audit-Checkpoint` of the last part has a signed checkpoint of its last entry. The trail records each part that is exported.',
  request: { query: z.strictObject({ format: z.enum(auditFormats).default('ndjson'), after }) },
  responses: {
    200: {
      description: 'A part of the trail',
      content: { 'application/x-ndjson': {}, 'text/csv; charset=utf-8': {} },
    },
  },
  capabilities: ['table:read', 'table:write', 'queue:events', 'secret:audit-key'],
})

const signedCheckpoint = z.string().max(1000)

const AuditVerification = z
  .object({
    valid: z.boolean(),
    entries: sequence.meta({ description: 'Number of entries checked', example: 1 }),
    headSeq: sequence.meta({ description: 'The newest sequence number', example: 1 }),
    headHash: hash.meta({
      description: 'Hash of the newest entry. Store it elsewhere to prove later that no entry was rewritten',
    }),
    firstBroken: sequence.optional().meta({
      description:
        'Sequence number of the first entry that is missing, or that does not match its hash, the previous entry or the checkpoint',
    }),
    next: sequence.optional().meta({ description: 'Present if more entries follow: pass it as `after`' }),
  })
  .meta({ id: 'AuditVerification' })
export type AuditVerification = z.infer<typeof AuditVerification>

export const AuditCheckpoint = z
  .object({
    checkpoint: signedCheckpoint.meta({
      description: 'JWS (`typ` audit-checkpoint+jws, EdDSA) with the claims `organisationId`, `seq`, `hash` and `iat`',
    }),
    seq: sequence.meta({ description: 'The newest sequence number', example: 1 }),
    hash: hash.meta({ description: 'Hash of the newest entry' }),
    at: timestamp,
    key: PublicKey.meta({ description: 'Verifies the checkpoint. Store it with the first checkpoint' }),
  })
  .meta({ id: 'AuditCheckpoint' })
export type AuditCheckpoint = z.infer<typeof AuditCheckpoint>

export const getAuditCheckpoint = createRoute({
  method: 'get',
  path: '/api/v1/platform/audit/checkpoint',
  access: 'audit:read',
  tags: ['Audit'],
  summary: 'A signed checkpoint of the audit trail',
  description:
    'Store it outside the platform. Verifying the trail with it later detects changed and removed entries, including the newest ones of that time.',
  responses: { 200: { description: 'A checkpoint of the newest entry', content: json(AuditCheckpoint) } },
  capabilities: ['table:read', 'secret:audit-key'],
})

export const verifyAudit = createRoute({
  method: 'get',
  path: '/api/v1/platform/audit/verify',
  access: 'audit:read',
  tags: ['Audit'],
  summary: 'Verify the chain of the audit trail',
  description:
    'Recomputes every hash. One call checks up to 20,000 entries. For a longer chain, pass `next` as `after` of the next call; the chain is intact if every part is valid.',
  request: {
    query: z.strictObject({
      after,
      checkpoint: signedCheckpoint.optional().meta({
        description: 'A checkpoint that this platform has signed; detects entries that were removed or replaced since',
      }),
    }),
  },
  responses: { 200: { description: 'The result of the verification', content: json(AuditVerification) } },
  capabilities: ['table:read', 'secret:audit-key'],
})
