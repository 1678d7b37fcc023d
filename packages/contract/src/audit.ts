import * as z from 'zod'
import { id, line, pageOf, paging, timestamp } from './common.ts'
import { endpoint } from './endpoint.ts'

/** The audit trail (D40): one entry for every change, in a chain that anybody who holds an export can verify. */

const sequence = z.int().min(0)
const hash = z.string().max(64).meta({ example: 'bd1f0c2c9c2ab4f2a1e3b5d4c6f7089a1b2c3d4e5f60718293a4b5c6d7e8f901' })

/** Who did it. `id` is a user, a relay, or `system`. */
export const AuditActor = z
  .object({
    kind: z.enum(['user', 'relay', 'system']),
    id: z.string().max(40),
    tokenId: id('tok').optional().meta({ description: 'The API token that was used' }),
  })
  .meta({ id: 'AuditActor', example: { kind: 'user', id: 'user_01jd8w5k3zr9x2m4c7t6v0b1qa' } })

/** An entry but for its hash: what the hash is made of. */
const content = {
  id: id('aud'),
  seq: sequence.meta({ description: 'Counts the entries of the organisation from 1, without gaps', example: 1 }),
  at: timestamp.meta({ description: 'When; ascends along the chain' }),
  actor: AuditActor,
  action: z.string().max(100).meta({ example: 'cluster.register' }),
  resource: z.string().max(200).meta({ example: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
  detail: z.string().max(2000).meta({ example: 'berlin-1' }),
  address: z.string().max(64).optional().meta({ description: 'Where the request came from' }),
  traceId: z.string().max(32),
  extra: z.literal(true).optional().meta({ description: 'Written by a caller, not by the platform' }),
  previousHash: hash.meta({ description: 'The hash of the entry before; of the organisation’s id before the first' }),
}

export const AuditEntry = z.object({ ...content, hash }).meta({
  id: 'AuditEntry',
  description:
    '`hash` is the SHA-256, in lower-case hex, of the entry without `hash` as canonical JSON (RFC 8785) in UTF-8. `previousHash` is the `hash` of the entry before; that of the first entry is the SHA-256 of the organisation’s id.',
})
export type AuditEntry = z.infer<typeof AuditEntry>

const text = z
  .string()
  .max(2000)
  .refine((value) => value.isWellFormed(), 'must be well-formed text')
  // Tabs and line ends alone among control characters: the rest would act on whoever reads the trail in a terminal.
  // oxlint-disable-next-line no-control-regex
  .regex(/^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028\u2029]*$/u, 'must not hold control characters')

export const AuditEntryRequest = z
  .object({
    action: line(1, 100).meta({ example: 'change.approved' }),
    resource: line(1, 200).meta({ example: 'clus_01jd8w5k3zr9x2m4c7t6v0b1qa' }),
    detail: text.meta({ example: 'Approved by the change board' }),
  })
  .meta({ id: 'AuditEntryRequest' })
export type AuditEntryRequest = z.infer<typeof AuditEntryRequest>

export const addAuditEntry = endpoint({
  method: 'POST',
  path: '/api/v1/platform/audit',
  access: 'platform:admin',
  tag: 'Audit',
  summary: 'Write an extra entry',
  description:
    'Changes write their entries by themselves; this is for what happens elsewhere. Such entries are `extra`.',
  request: { body: AuditEntryRequest },
  responses: { 204: { description: 'Accepted; the entry joins the chain within moments' } },
  uses: ['table:write', 'queue:events'],
})

const moment = (description: string) =>
  z.iso
    .datetime({ offset: true })
    .transform((value) => Math.max(0, Date.parse(value)))
    .optional()
    .meta({ description, override: { type: 'string', format: 'date-time', maxLength: 40, pattern: undefined } })

const filters = {
  actor: z.string().max(40).optional().meta({ description: 'Only what this user or relay did, or `system`' }),
  action: z.string().max(100).optional().meta({ description: 'Only this action', example: 'cluster.delete' }),
  resource: z.string().max(200).optional().meta({ description: 'Only what was done to this' }),
  from: moment('Only entries of this time or later'),
  to: moment('Only entries before this time'),
}

export const listAuditEntries = endpoint({
  method: 'GET',
  path: '/api/v1/platform/audit',
  access: 'audit:read',
  tag: 'Audit',
  summary: 'The audit trail of the organisation, newest first',
  description: 'Entries are found by actor, action and resource within a second of joining the chain.',
  request: { query: z.object({ ...filters, ...paging }) },
  responses: { 200: { description: 'A page of entries', schema: pageOf(AuditEntry) } },
  uses: ['table:read'],
})

/** A sequence number to go on behind. */
const after = z
  .string()
  .regex(/^(0|[1-9][0-9]{0,11})$/, 'must be a whole number')
  .transform(Number)
  .optional()
  .transform((value) => value ?? 0)
  .meta({
    description: 'Begin behind this sequence number',
    override: {
      type: 'integer',
      format: 'int64',
      minimum: 0,
      maximum: 999_999_999_999,
      default: 0,
      pattern: undefined,
    },
  })

export const auditFormats = ['ndjson', 'csv'] as const

export const exportAudit = endpoint({
  method: 'GET',
  path: '/api/v1/platform/audit/export',
  access: 'audit:read',
  tag: 'Audit',
  summary: 'The audit trail as a file, oldest first, in parts',
  description:
    'A part holds up to 1 MB. While more follows, the header `Link` names the next part (`rel="next"`); the parts joined are the file. NDJSON holds one entry on each line. CSV follows RFC 4180 with a header row in the first part; a cell that begins with `=`, `+`, `-`, `@`, a tab, a carriage return or an apostrophe has an apostrophe put before it, because spreadsheets would take it for a formula: take one away to verify.',
  request: { query: z.object({ format: z.enum(auditFormats).default('ndjson'), after }) },
  responses: {
    200: {
      description: 'A part of the trail',
      contentType: 'application/x-ndjson',
      otherContentTypes: ['text/csv; charset=utf-8'],
    },
  },
  uses: ['table:read'],
})

const AuditVerification = z
  .object({
    valid: z.boolean(),
    entries: sequence.meta({ description: 'How many entries were checked', example: 1 }),
    headSeq: sequence.meta({ description: 'The newest sequence number', example: 1 }),
    headHash: hash.meta({
      description: 'The hash of the newest entry. Kept elsewhere, it proves that nothing was rewritten',
    }),
    firstBroken: sequence
      .optional()
      .meta({ description: 'The first entry that does not fit its hash or the entry before it' }),
    next: sequence.optional().meta({ description: 'More follows: pass it as `after`' }),
  })
  .meta({ id: 'AuditVerification' })
export type AuditVerification = z.infer<typeof AuditVerification>

export const verifyAudit = endpoint({
  method: 'GET',
  path: '/api/v1/platform/audit/verify',
  access: 'audit:read',
  tag: 'Audit',
  summary: 'Verify the chain of the audit trail',
  description:
    'Computes every hash anew. One call checks up to 20,000 entries; of a longer chain `next` tells where to go on, and the chain is whole when every part is valid.',
  request: { query: z.object({ after }) },
  responses: { 200: { description: 'What was found', schema: AuditVerification } },
  uses: ['table:read'],
})
