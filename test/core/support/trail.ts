import { createHash } from 'node:crypto'
import { newCaller } from '../../support/fixtures.ts'
import { auditEffect, drainOutbox, writeOutboxRecords } from './outbox.ts'

export const numbersUpTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

/** An organisation with some entries in its chain. */
export async function organisationWithEntries(count: number) {
  const caller = await newCaller()
  await writeOutboxRecords(
    caller,
    numbersUpTo(count).map((number) => auditEffect('test.change', `resource ${number}`, `detail ${number}`)),
  )
  await drainOutbox(caller.organisationId)
  return caller
}

/** RFC 8785 for what entries hold, written from the RFC and not from the platform's code. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`
}

/** What an outsider does with an export: the number of entries that hold together, from the first. */
export function countVerifiedEntries(organisationId: string, entries: readonly any[]): number {
  let previousHash = createHash('sha256').update(organisationId).digest('hex')
  for (const [index, { hash, ...content }] of entries.entries()) {
    const computed = createHash('sha256').update(canonicalJson(content), 'utf8').digest('hex')
    if (computed !== hash || content.previousHash !== previousHash || content.seq !== index + 1) return index
    previousHash = hash
  }
  return entries.length
}
