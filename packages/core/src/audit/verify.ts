import type { AuditVerification } from '@platform/contract/audit'
import { readCheckpoint } from './checkpoint.ts'
import { readAuditHead } from './projection.ts'
import { genesisHash, isValidEntry } from './entry.ts'
import type { Caller } from '../caller.ts'
import * as keys from '../db/keys.ts'
import { get, type Item, query } from '../db/table.ts'

/** Limits a call to a few seconds. */
const maxEntriesPerCall = 20_000

/** Verifies at most `limit` entries after number `after`, and the checkpoint. */
export async function verify(
  { organisationId }: Caller,
  range: { after: number; checkpoint?: string | undefined },
  limit = maxEntriesPerCall,
): Promise<AuditVerification> {
  const checkpoint = range.checkpoint === undefined ? undefined : await readCheckpoint(organisationId, range.checkpoint)
  const head = await readAuditHead(organisationId)
  const after = Math.min(range.after, head.seq)
  const lastSeq = Math.min(head.seq, after + limit)
  let seq = after
  let previousHash = await hashOf(organisationId, after)
  for await (const item of entries(organisationId, after + 1, lastSeq)) {
    const position = { seq: seq + 1, previousHash }
    if (!isValidEntry(organisationId, item, position)) break
    seq = position.seq
    previousHash = String(item['hash'])
  }
  const summary = { entries: seq - after, headSeq: head.seq, headHash: head.hash }
  if (seq < lastSeq) return { valid: false, ...summary, firstBroken: seq + 1 }
  if (checkpoint !== undefined && checkpoint.seq > head.seq)
    return { valid: false, ...summary, firstBroken: head.seq + 1 }
  if (checkpoint !== undefined && (await hashOf(organisationId, checkpoint.seq)) !== checkpoint.hash)
    return { valid: false, ...summary, firstBroken: checkpoint.seq }
  if (lastSeq < head.seq) return { valid: true, ...summary, next: lastSeq }
  return previousHash === head.hash ? { valid: true, ...summary } : { valid: false, ...summary, firstBroken: head.seq }
}

async function hashOf(organisationId: string, seq: number): Promise<string> {
  if (seq === 0) return genesisHash(organisationId)
  const item = await get(keys.auditEntry(organisationId, seq))
  return String(item?.['hash'])
}

async function* entries(organisationId: string, firstSeq: number, lastSeq: number): AsyncGenerator<Item> {
  if (firstSeq > lastSeq) return
  const [from, to] = [keys.auditEntry(organisationId, firstSeq), keys.auditEntry(organisationId, lastSeq)]
  let after: Item | undefined
  do {
    const page = await query({ pk: from.pk, from: from.sk, to: to.sk, ...(after && { after }) })
    yield* page.items
    after = page.next
  } while (after !== undefined)
}
