import * as z from 'zod'
import { unchangedCondition } from '../db/expression.ts'
import { entryItem, genesisHash } from './entry.ts'
import type { Projection } from '../outbox/run-projections.ts'
import * as keys from '../db/keys.ts'
import { create, get, type Item, type WriteItem } from '../db/table.ts'
import type { OutboxRecord } from '../outbox/record.ts'

const Head = z.object({ auditSeq: z.number(), auditHash: z.string(), auditAtMs: z.number() })

/** The newest entry of a trail. In an empty trail, `seq` is 0. */
export interface AuditHead {
  seq: number
  hash: string
  atMs: number
}

export async function readAuditHead(organisationId: string): Promise<AuditHead> {
  return headIn(organisationId, (await get(keys.organisationCounts(organisationId))) ?? {})
}

function headIn(organisationId: string, counts: Item): AuditHead {
  if (counts['auditSeq'] === undefined) return { seq: 0, hash: genesisHash(organisationId), atMs: 0 }
  const { auditSeq, auditHash, auditAtMs } = Head.parse(counts)
  return { seq: auditSeq, hash: auditHash, atMs: auditAtMs }
}

/** The transaction advances the head conditionally, so that concurrent projections cannot fork the chain. */
export const auditProjection: Projection = {
  name: 'audit',
  countedWrites: (organisationId, records, counts) => {
    if (records.every(({ audit }) => audit === undefined)) return {}
    const before = headIn(organisationId, counts)
    const { head, writes } = records.reduce(append, { head: before, writes: [] })
    return {
      set: { auditSeq: head.seq, auditHash: head.hash, auditAtMs: head.atMs },
      condition: { auditSeq: unchangedCondition(before.seq || undefined) },
      writes,
    }
  },
}

function append({ head, writes }: { head: AuditHead; writes: WriteItem[] }, record: OutboxRecord) {
  if (record.audit === undefined) return { head, writes }
  // Records of different processes may arrive slightly out of order.
  const position = { seq: head.seq + 1, atMs: Math.max(record.atMs, head.atMs + 1), previousHash: head.hash }
  const item = entryItem(record, record.audit, position)
  return {
    head: { seq: position.seq, atMs: position.atMs, hash: item.hash },
    writes: [...writes, create(keys.auditEntry(record.organisationId, position.seq), item)],
  }
}
