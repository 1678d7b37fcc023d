import { AuditEntry } from '@platform/contract/audit'
import { iso } from '../clock.ts'
import * as keys from '../db/keys.ts'
import { type Item } from '../db/table.ts'
import { derivedId, sha256 } from '../id.ts'
import { type OutboxRecord } from '../outbox/record.ts'

/**
 * The format of audit entries. A hash covers the entry's canonical JSON (RFC 8785), including the previous hash. That
 * JSON is stored, displayed, exported and verified as is.
 */

/** Field names in RFC 8785 order, including those of nested objects. */
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

/** The previous hash of an organisation's first entry. */
export const genesisHash = (organisationId: string): string => sha256(organisationId)

/** The position of an entry in its chain. */
export interface ChainPosition {
  seq: number
  /** Times ascend along a chain, so that pages and time filters find entries by either. */
  atMs: number
  previousHash: string
}

/** The stored item of a record's entry at its position. */
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

export const parseEntry = ({ entry, hash }: Item): AuditEntry =>
  AuditEntry.parse({ ...JSON.parse(String(entry)), hash })

/** Whether a stored item is intact, in sequence and indexed correctly. */
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
