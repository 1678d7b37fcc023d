import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readIfPresent, writeDurably } from './files.ts'
import type { OutputCall } from './output.ts'

/** Stores the undelivered output of ended jobs on disk. */
export class Spool {
  readonly #folder: string

  constructor(stateFolder: string) {
    this.#folder = join(stateFolder, 'spool')
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
  }

  /** Stores the requests, which are durable when the function returns. */
  store(jobId: string, calls: readonly OutputCall[]): void {
    if (calls.length > 0) writeDurably(this.#path(jobId), JSON.stringify(calls))
  }

  load(jobId: string): OutputCall[] {
    const text = readIfPresent(this.#path(jobId))
    return text === undefined ? [] : JSON.parse(text)
  }

  remove(jobId: string): void {
    rmSync(this.#path(jobId), { force: true })
  }

  #path(jobId: string): string {
    return join(this.#folder, `${jobId}.json`)
  }
}
