import { AuditEntry } from '@platform/contract/audit'
import { iso } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item } from '../db/table.ts'
import { derivedId, sha256 } from '../id.ts'
import { type OutboxRecord } from '../outbox/record.ts'

/**
 * The form of audit entries (D40). An entry's hash covers its canonical JSON (RFC 8785), which holds the hash of the entry
 * before. Stored is that very text: what is shown, exported and verified is what was hashed.
 */

/** Names in the order of RFC 8785, those of nested objects among them. */
const names = [
  'action',
  'actor',
  'address',
  'at',
  'detail',
  'extra',
  'id',
  'kind',
  'previousHash',
  'resource',
  'seq',
  'tokenId',
  'traceId',
]

const canonical = (content: Omit<AuditEntry, 'hash'>): string => JSON.stringify(content, names)

/** What the first entry of an organisation names as the hash before it. */
export const genesisHash = (organisationId: string): string => sha256(organisationId)

/** Where an entry stands in its chain. */
export interface ChainPosition {
  seq: number
  /** Times ascend along a chain: pages and time filters find entries by either. */
  atMs: number
  previousHash: string
}

/** The stored item of the entry that a record asks for, at its place. */
export function entryItem(record: OutboxRecord, audit: NonNullable<OutboxRecord['audit']>, place: ChainPosition) {
  const { organisationId, actor, address, traceId } = record
  const id = derivedId('aud', place.atMs, record.id)
  const { seq, previousHash } = place
  const [action, resource, detail] = [
    bounded(audit.action, 100),
    bounded(audit.resource, 200),
    bounded(audit.detail, 2000),
  ]
  const text = canonical({
    id,
    seq,
    at: iso(place.atMs),
    actor,
    action,
    resource,
    detail,
    traceId,
    previousHash,
    ...(address !== undefined && { address: bounded(address, 64) }),
    ...(audit.isExtra && { extra: true }),
  })
  return {
    id,
    entry: text,
    hash: sha256(text),
    ...keys.auditIndexKeys(organisationId, { actor: actor.id, action, resource }),
  }
}

const bounded = (text: string, length: number): string => text.slice(0, length).toWellFormed()

/** An entry of its stored item. */
export const parseEntry = ({ entry, hash }: Item): AuditEntry =>
  AuditEntry.parse({ ...JSON.parse(String(entry)), hash })

/** Whether a stored item is the entry of its place: whole, in its turn, and filed where filters look for it. */
export function hasValidHash(
  organisationId: string,
  item: Item,
  { seq, previousHash }: Omit<ChainPosition, 'atMs'>,
): boolean {
  const { sk, hash } = item
  const text = String(item['entry'])
  const entry = readable(text, hash)
  if (entry === undefined || sk !== keys.auditEntry(organisationId, seq).sk || sha256(text) !== hash) return false
  const { id, actor, action, resource } = entry
  const expected = { id, ...keys.auditIndexKeys(organisationId, { actor: actor.id, action, resource }) }
  const isFiled = Object.entries(expected).every(([name, value]) => item[name] === value)
  return isFiled && entry.seq === seq && entry.previousHash === previousHash
}

function readable(text: string, hash: unknown): AuditEntry | undefined {
  try {
    return AuditEntry.parse({ ...JSON.parse(text), hash })
  } catch {
    return undefined
  }
}
