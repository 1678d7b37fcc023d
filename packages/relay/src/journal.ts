import { closeSync, fdatasyncSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { now } from './clock.ts'
import { FatalError } from './exit-codes.ts'
import { readIfPresent, writeDurably } from './files.ts'
import { applyRecord, type Entry, type JournalRecord, parseRecord, type Unfinished } from './journal-entry.ts'

// Statements expire sooner, so a forgotten job cannot be replayed.
const retentionMs = 35 * 24 * 3600 * 1000
const maxRecords = 1000

/**
 * The recorded jobs of the relay, one JSON record per line. Appending is synchronous: when `append` returns, the record
 * survives a power loss, and the next line of code may rely on it.
 */
export class Journal {
  readonly #path: string
  #entries = new Map<string, Entry>()
  #file = -1
  #sizeBytes = 0
  #recordCount = 0

  /** Opens the journal, repairs its last line and drops old jobs. Throws `FatalError` if it is damaged elsewhere. */
  constructor(path: string) {
    this.#path = path
    for (const record of readRecords(path)) applyRecord(this.#entries, record)
    this.#compact()
  }

  /** Whether this relay has ever claimed the job. */
  has(jobId: string): boolean {
    return this.#entries.has(jobId)
  }

  /** The jobs with an end that the server has not acknowledged. */
  unfinished(): Unfinished[] {
    return [...this.#entries.values()].filter((entry) => entry.state !== 'done')
  }

  append(record: JournalRecord): void {
    const line = Buffer.from(`${JSON.stringify(record)}\n`)
    try {
      writeFully(this.#file, line, this.#sizeBytes)
      fdatasyncSync(this.#file)
    } catch (error) {
      // A partial record would damage the next one.
      ftruncateSync(this.#file, this.#sizeBytes)
      throw error
    }
    this.#sizeBytes += line.length
    this.#recordCount += 1
    applyRecord(this.#entries, record)
    if (this.#recordCount > maxRecords) this.#compact()
  }

  close(): void {
    closeSync(this.#file)
  }

  #compact(): void {
    const oldestMs = now() - retentionMs
    const entries = [...this.#entries].filter(([, entry]) => entry.state !== 'done' || entry.atMs > oldestMs)
    this.#entries = new Map(entries)
    const text = entries.map(([, entry]) => `${JSON.stringify(entry)}\n`).join('')
    writeDurably(this.#path, text)
    if (this.#file !== -1) closeSync(this.#file)
    this.#file = openSync(this.#path, 'r+')
    this.#sizeBytes = Buffer.byteLength(text)
    this.#recordCount = 0
  }
}

function readRecords(path: string): JournalRecord[] {
  const lines = (readIfPresent(path) ?? '').split('\n').filter((line) => line !== '')
  const records = lines.map(parseRecord)
  const damagedIndex = records.indexOf(undefined)
  // A power loss damages only the last record, and no step was taken after it.
  if (damagedIndex !== -1 && damagedIndex < records.length - 1) {
    throw new FatalError(
      'stateInUse',
      `${path} is damaged in line ${damagedIndex + 1}. Enroll again with another --state-dir.`,
    )
  }
  return records.filter((record) => record !== undefined)
}

function writeFully(file: number, bytes: Buffer, position: number): void {
  for (let written = 0; written < bytes.length;) {
    written += writeSync(file, bytes, written, bytes.length - written, position + written)
  }
}
