import type { AuditEntry, auditFormats } from '@platform/contract/audit'
import { signCheckpoint } from './checkpoint.ts'
import { readAuditHead } from './projection.ts'
import { parseEntry } from './entry.ts'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { query } from '../db/table.ts'
import { commit } from '../outbox/commit.ts'

/** Long entries make a page shorter, because a query returns at most 1 MB. */
const maxEntriesPerPage = 1000

export interface ExportQuery {
  format: (typeof auditFormats)[number]
  after: number
}

/** `next` is the `after` of the next page. The last page has a checkpoint instead. */
export async function exportPage(
  caller: Caller,
  { format, after }: ExportQuery,
): Promise<{ text: string; next: number | undefined; checkpoint: string | undefined }> {
  const { organisationId } = caller
  const { pk, sk } = keys.auditEntry(organisationId, after + 1)
  const [head, { items }] = await Promise.all([
    readAuditHead(organisationId),
    query({ pk, from: sk, limit: maxEntriesPerPage }),
  ])
  const entries = items.map(parseEntry)
  const lastSeq = entries.at(-1)?.seq ?? head.seq
  const text =
    format === 'csv' ? csvOf(entries, after === 0) : entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
  const detail = `Entries ${after + 1} to ${lastSeq} as ${format}`
  await commit(caller, { writes: [], audit: { action: 'audit.export', resource: 'audit', detail } })
  if (lastSeq < head.seq) return { text, next: lastSeq, checkpoint: undefined }
  // Entries may have joined the chain after the head was read.
  const newestHead = { ...head, seq: lastSeq, hash: entries.at(-1)?.hash ?? head.hash }
  return { text, next: undefined, checkpoint: await signCheckpoint(organisationId, newestHead) }
}

/** The columns of the CSV file (RFC 4180), in order. */
const columns: Record<string, (entry: AuditEntry) => string | undefined> = {
  seq: ({ seq }) => String(seq),
  id: ({ id }) => id,
  at: ({ at }) => at,
  actorKind: ({ actor }) => actor.kind,
  actorId: ({ actor }) => actor.id,
  actorTokenId: ({ actor }) => actor.tokenId,
  action: ({ action }) => action,
  resource: ({ resource }) => resource,
  detail: ({ detail }) => detail,
  address: ({ address }) => address,
  traceId: ({ traceId }) => traceId,
  extra: ({ extra }) => extra && 'true',
  previousHash: ({ previousHash }) => previousHash,
  hash: ({ hash }) => hash,
}

function csvOf(entries: readonly AuditEntry[], hasHeader: boolean): string {
  const rows = entries.map((entry) => Object.values(columns).map((valueOf) => valueOf(entry) ?? ''))
  return [...(hasHeader ? [Object.keys(columns)] : []), ...rows]
    .map((row) => `${row.map(csvCell).join(',')}\r\n`)
    .join('')
}

/** A leading apostrophe prevents spreadsheets from running the text as a formula; readers can remove it. */
const csvCell = (text: string): string => `"${text.replace(/^[=+\-@\t\r']/, "'$&").replaceAll('"', '""')}"`
