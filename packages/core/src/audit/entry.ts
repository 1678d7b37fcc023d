import { AuditEntry } from '@platform/contract/audit'
import { iso } from '../clock.ts'
import * as keys from '../db/keys.ts'
import type { Item } from '../db/table.ts'
import { derivedId, sha256 } from '../id.ts'
import type { OutboxRecord } from '../outbox/record.ts'

/**
 * The hash covers the entry's canonical JSON (RFC 8785), which includes the previous hash. The same text is stored and
 * verified.
 */

/** The field names of entries and their nested objects, in the order of RFC 8785. */
const fieldNames = [
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

const canonical = (content: Omit<AuditEntry, 'hash'>): string => JSON.stringify(content, fieldNames)

export const genesisHash = (organisationId: string): string => sha256(organisationId)

export interface ChainPosition {
  seq: number
  /** Strictly ascending along the chain, so that a time filter can search for its first and last entry number. */
  atMs: number
  previousHash: string
}

export function entryItem(record: OutboxRecord, audit: NonNullable<OutboxRecord['audit']>, position: ChainPosition) {
  const { organisationId, actor, address, traceId } = record
  const id = derivedId('aud', position.atMs, record.id)
  const { seq, previousHash } = position
  const [action, resource, detail] = [
    truncate(audit.action, 100),
    truncate(audit.resource, 200),
    truncate(audit.detail, 2000),
  ]
  const text = canonical({
    id,
    seq,
    at: iso(position.atMs),
    actor,
    action,
    resource,
    detail,
    traceId,
    previousHash,
    ...(address !== undefined && { address: truncate(address, 64) }),
    ...(audit.isExtra && { extra: true }),
  })
  return {
    id,
    entry: text,
    hash: sha256(text),
    ...keys.auditIndexKeys(organisationId, { actor: actor.id, action, resource }),
  }
}

const truncate = (text: string, length: number): string => text.slice(0, length).toWellFormed()

export const parseEntry = ({ entry, hash }: Item): AuditEntry =>
  AuditEntry.parse({ ...JSON.parse(String(entry)), hash })

export function isValidEntry(
  organisationId: string,
  item: Item,
  { seq, previousHash }: Omit<ChainPosition, 'atMs'>,
): boolean {
  const { sk, hash } = item
  const text = String(item['entry'])
  const entry = tryParse(text, hash)
  if (entry === undefined || sk !== keys.auditEntry(organisationId, seq).sk || sha256(text) !== hash) return false
  const { id, actor, action, resource } = entry
  const expectedItem = { id, ...keys.auditIndexKeys(organisationId, { actor: actor.id, action, resource }) }
  const isIndexed = Object.entries(expectedItem).every(([name, value]) => item[name] === value)
  return isIndexed && entry.seq === seq && entry.previousHash === previousHash
}

function tryParse(text: string, hash: unknown): AuditEntry | undefined {
  try {
    return AuditEntry.parse({ ...JSON.parse(text), hash })
  } catch {
    return undefined
  }
}
