import { hash } from 'node:crypto'
import type { Changes } from './commit-log.ts'
import { constraintError, dynamoError } from './errors.ts'
import { tokenExpiryRecord, tokenExpiryRangeUntil, tokenRecord } from './keys.ts'
import type { Store } from './store.ts'

const WINDOW_MS = 10 * 60 * 1000
const MAX_TOKEN_LENGTH = 36
const RECORDS_PER_BATCH = 500

interface TokenRecord {
  fingerprint: string
  expiresAtMs: number
}

export interface Token {
  name: string
  fingerprint: string
}

export function readToken(name: unknown, transactItems: unknown): Token | undefined {
  if (name === undefined || name === null) return undefined
  if (typeof name !== 'string' || name.length === 0 || name.length > MAX_TOKEN_LENGTH) {
    const constraint = `Member must have length between 1 and ${MAX_TOKEN_LENGTH}`
    throw constraintError(JSON.stringify(name), 'clientRequestToken', constraint)
  }
  return { name, fingerprint: hash('sha256', canonicalJson(transactItems), 'base64') }
}

/** Throws `IdempotentParameterMismatchException` if the token belongs to another transaction. */
export function wasExecuted(store: Store, token: Token): boolean {
  const record: TokenRecord | undefined = store.commits.latestValue(tokenRecord(token.name))
  if (!record || record.expiresAtMs <= Date.now()) return false
  if (record.fingerprint === token.fingerprint) return true
  throw dynamoError(
    'IdempotentParameterMismatchException',
    'The provided client token is already in use with different parameters',
  )
}

/** Stores the token in the batch of its transaction, so that either both or neither survive a crash. */
export function stageToken(changes: Changes, token: Token): void {
  const expiresAtMs = Date.now() + WINDOW_MS
  changes.set(tokenRecord(token.name), { fingerprint: token.fingerprint, expiresAtMs } satisfies TokenRecord)
  changes.set(tokenExpiryRecord(expiresAtMs, token.name), token.name)
}

export async function deleteExpiredTokens(store: Store, nowMs: number): Promise<void> {
  const dueRange = { ...tokenExpiryRangeUntil(nowMs), limit: RECORDS_PER_BATCH }
  for (;;) {
    const records: [string, string][] = await store.database.iterator(dueRange).all()
    if (records.length === 0) return
    const changes: Changes = new Map()
    for (const [record, name] of records) {
      changes.set(record, null)
      const token: TokenRecord | undefined = store.commits.latestValue(tokenRecord(name))
      if (token && token.expiresAtMs <= nowMs) changes.set(tokenRecord(name), null)
    }
    await store.commits.commit(changes)
  }
}

/** Returns the same text for equal content, regardless of the order of members. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    member && typeof member === 'object' && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).toSorted(([left], [right]) => (left < right ? -1 : 1)))
      : member,
  )
}
