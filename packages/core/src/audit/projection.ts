import * as z from 'zod'
import { entryItem, genesisHash } from './entry.ts'
import { type Projection } from '../outbox/run-projections.ts'
import * as keys from '../db/keys.ts'
import { create, get, replace, type WriteItem } from '../db/table.ts'
import { type OutboxRecord } from '../outbox/record.ts'

const Head = z.object({ seq: z.number(), hash: z.string(), atMs: z.number() })
export type AuditHead = z.infer<typeof Head>

export async function auditHead(organisationId: string): Promise<AuditHead> {
  const item = await get(keys.auditHead(organisationId))
  return Head.parse(item ?? { seq: 0, hash: genesisHash(organisationId), atMs: 0 })
}

/** The transaction advances the head conditionally, so that concurrent projections cannot fork the chain. */
export const auditProjection: Projection = {
  name: 'audit',
  writes: async (organisationId, records) => {
    if (records.every(({ audit }) => audit === undefined)) return []
    const before = await auditHead(organisationId)
    const { head, writes } = records.reduce(append, { head: before, writes: [] })
    const unchanged = before.seq === 0 ? { pk: { absent: true as const } } : { seq: { is: before.seq } }
    return [replace(keys.auditHead(organisationId), { ...head }, unchanged), ...writes]
  },
}

function append({ head, writes }: { head: AuditHead; writes: WriteItem[] }, record: OutboxRecord) {
  if (record.audit === undefined) return { head, writes }
  // Records of different processes arrive slightly out of order.
  const position = { seq: head.seq + 1, atMs: Math.max(record.atMs, head.atMs + 1), previousHash: head.hash }
  const item = entryItem(record, record.audit, position)
  return {
    head: { seq: position.seq, atMs: position.atMs, hash: item.hash },
    writes: [...writes, create(keys.auditEntry(record.organisationId, position.seq), item)],
  }
}
