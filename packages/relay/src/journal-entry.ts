import type { Completion } from '@platform/contract/relay'
import { type JsonObject, parseJsonObject } from './json.ts'
import type { Leader } from './process-group.ts'

/** The result of a job without its lease. */
export type CompletionRecord = Omit<Completion, 'leaseId'>

/** The recorded state of a job. A job that has an entry never runs again. */
export type Entry =
  | { state: 'claiming'; jobId: string; claimKey: string }
  | { state: 'started'; jobId: string; leaseId: string; leaders: Leader[] }
  | { state: 'finished'; jobId: string; leaseId: string; ending: CompletionRecord }
  | { state: 'done'; jobId: string; atMs: number }

/** The entry of a job whose result the server has not acknowledged. */
export type UnfinishedEntry = Exclude<Entry, { state: 'done' }>

/** One line of the journal. The newest `nextClaimKey` is the claim key of the next heartbeat. */
export type JournalRecord = { nextClaimKey?: string } & (
  | Entry
  | { state: 'spawned'; jobId: string; leader: Leader }
  | { state: 'dropped'; jobId: string }
)

/** Creates a record of a key without a job. Earlier versions of the relay ignore the record. */
export function keyRecord(nextClaimKey: string): JournalRecord {
  return { state: 'dropped', jobId: '', nextClaimKey }
}

/** Applies one record to the entries. Records must be applied in the order of the journal. */
export function applyRecord(entries: Map<string, Entry>, record: JournalRecord): void {
  const entry = entries.get(record.jobId)
  if (record.state === 'spawned') {
    if (entry?.state === 'started') entry.leaders.push(record.leader)
  } else if (record.state === 'dropped') {
    entries.delete(record.jobId)
  } else {
    const { nextClaimKey: _, ...stored } = record
    entries.set(record.jobId, stored)
  }
}

/** Parses a line of the journal. Returns undefined if the line is damaged. */
export function parseRecord(line: string): JournalRecord | undefined {
  const value = parseJsonObject(line)
  return value && isRecord(value) ? value : undefined
}

const requiredMembers = {
  claiming: ['claimKey'],
  started: ['leaseId', 'leaders'],
  finished: ['leaseId', 'ending'],
  done: ['atMs'],
  spawned: ['leader'],
  dropped: [],
} satisfies Record<JournalRecord['state'], string[]>

function isRecord(value: JsonObject): value is JournalRecord {
  const requiredNames: string[] | undefined = new Map(Object.entries(requiredMembers)).get(String(value.state))
  return typeof value.jobId === 'string' && requiredNames !== undefined && requiredNames.every((name) => name in value)
}
