import { closeSync, fdatasyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { now } from './clock.ts'
import { FatalError } from './exit-codes.ts'
import { readIfPresent, writeDurably } from './files.ts'
import {
  applyRecord,
  type Entry,
  type JournalRecord,
  keyRecord,
  parseRecord,
  type UnfinishedEntry,
} from './journal-entry.ts'

// This is longer than any statement is valid, so that a job whose entry was removed cannot be replayed.
const retentionMs = 35 * 24 * 3600 * 1000
const maxRecords = 1000

/**
 * The recorded jobs of the relay, one JSON record per line. `append` is synchronous: when it returns, the records
 * survive the end of the process, and those that prevent a second run or contain a result survive a power loss.
 */
export class Journal {
  readonly #path: string
  #entries = new Map<string, Entry>()
  #file = -1
  #sizeBytes = 0
  #recordCount = 0
  #claimKey: string | undefined

  /**
   * Opens the journal, removes a damaged last line and drops old jobs. Throws `FatalError` if another line is damaged.
   */
  constructor(path: string) {
    this.#path = path
    for (const record of readRecords(path)) this.#apply(record)
    this.#compact()
  }

  /** Whether the journal contains the job. Jobs are kept for at least 35 days after the report of their result. */
  has(jobId: string): boolean {
    return this.#entries.has(jobId)
  }

  unfinishedEntries(): UnfinishedEntry[] {
    return [...this.#entries.values()].filter((entry) => entry.state !== 'done')
  }

  /** The claim key of the next heartbeat; undefined in a new journal. */
  get claimKey(): string | undefined {
    return this.#claimKey
  }

  append(...records: JournalRecord[]): void {
    const lineBytes = Buffer.from(records.map((record) => `${JSON.stringify(record)}\n`).join(''))
    try {
      writeFully(this.#file, lineBytes, this.#sizeBytes)
      if (records.some(mustSurvive)) fdatasyncSync(this.#file)
    } catch (error) {
      // A record after a partial one would be unreadable, so the partial records are removed.
      ftruncateSync(this.#file, this.#sizeBytes)
      throw error
    }
    this.#sizeBytes += lineBytes.length
    this.#recordCount += records.length
    for (const record of records) this.#apply(record)
    if (this.#recordCount > maxRecords) this.#compact()
  }

  close(): void {
    closeSync(this.#file)
  }

  #apply(record: JournalRecord): void {
    this.#claimKey = record.nextClaimKey ?? this.#claimKey
    applyRecord(this.#entries, record)
  }

  #compact(): void {
    const oldestMs = now() - retentionMs
    const entries = [...this.#entries].filter(([, entry]) => entry.state !== 'done' || entry.atMs > oldestMs)
    this.#entries = new Map(entries)
    const records = [...entries.map(([, entry]) => entry), ...(this.#claimKey ? [keyRecord(this.#claimKey)] : [])]
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join('')
    writeDurably(this.#path, text)
    if (this.#file !== -1) closeSync(this.#file)
    this.#file = openSync(this.#path, 'r+')
    this.#sizeBytes = Buffer.byteLength(text)
    this.#recordCount = 0
  }
}

// A power loss may remove the other records: it ends spawned processes, and a repeated report has no effect.
function mustSurvive({ state, nextClaimKey }: JournalRecord): boolean {
  return nextClaimKey !== undefined || !['spawned', 'dropped', 'done'].includes(state)
}

function readRecords(path: string): JournalRecord[] {
  const lines = (readIfPresent(path) ?? '').split('\n').filter((line) => line !== '')
  const records = lines.map(parseRecord)
  const damagedIndex = records.indexOf(undefined)
  // A power loss can damage only the last record, and the step that it announces was not taken.
  if (damagedIndex !== -1 && damagedIndex < records.length - 1) {
    throw new FatalError(
      'stateUnusable',
      `${path} is damaged in line ${damagedIndex + 1}. Enroll again with another --state-dir.`,
    )
  }
  return records.filter((record) => record !== undefined)
}

function writeFully(fileDescriptor: number, bytes: Buffer, position: number): void {
  for (let writtenBytes = 0; writtenBytes < bytes.length;) {
    writtenBytes += writeSync(fileDescriptor, bytes, writtenBytes, bytes.length - writtenBytes, position + writtenBytes)
  }
}
