import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readIfPresent, writeDurably } from './files.ts'
import { warn } from './log.ts'
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

  /** Returns the stored requests. Sets a damaged file aside, because it must not prevent the report of the result. */
  load(jobId: string): OutputCall[] {
    const path = this.#path(jobId)
    try {
      const calls: unknown = JSON.parse(readIfPresent(path) ?? '[]')
      if (Array.isArray(calls)) return calls
    } catch {
      // The error message could contain output of the script, so it is not logged.
    }
    renameSync(path, `${path}.damaged`)
    warn(
      `${path} is damaged, so the rest of the output of job ${jobId} is not sent. It was moved to ${path}.damaged; delete it if you do not need it.`,
    )
    return []
  }

  remove(jobId: string): void {
    rmSync(this.#path(jobId), { force: true })
  }

  #path(jobId: string): string {
    return join(this.#folder, `${jobId}.json`)
  }
}
