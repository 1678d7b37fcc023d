import { accessSync, constants, existsSync, mkdirSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { FatalError } from './exit-codes.ts'
import { hasCode } from './files.ts'
import { messageOf, warn } from './log.ts'

// This is enough for the journal, the undelivered output and the script of a job.
const neededBytes = 2 * 1024 * 1024

/** Creates the state folder. Throws `FatalError` if it cannot be used. */
export function prepareState(folder: string): void {
  try {
    makeFolder(folder)
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw stateError(folder, error)
  }
}

function stateError(folder: string, cause: unknown): FatalError {
  const advice = 'Make it writable, free space on its disk, or use another --state-dir.'
  return new FatalError('stateUnusable', `The state folder ${folder} cannot be used: ${messageOf(cause)}. ${advice}`)
}

/** Converts the error of a full or read-only disk to a `FatalError`, and returns other errors unchanged. */
export function explainStorageError(folder: string, error: unknown): unknown {
  const isStorageError = ['ENOSPC', 'EDQUOT', 'EROFS'].some((code) => hasCode(error, code))
  return isStorageError ? stateError(folder, error) : error
}

// With `recursive`, `mkdirSync` never returns for a path below /proc.
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  mkdirSync(path, { mode: 0o700 })
}

/** The folders that a job needs. */
export class Storage {
  readonly #folders: string[]
  readonly #ensureFolders: () => void
  #wasWritable = true

  /** `ensure` creates missing folders, or throws. */
  constructor(folders: string[], ensure: () => void = () => {}) {
    this.#folders = folders
    this.#ensureFolders = ensure
  }

  /** Whether all folders are writable and have enough space. Warns when the result changes from true to false. */
  get isWritable(): boolean {
    const problem = this.#findProblem()
    if (problem && this.#wasWritable) warn(`No jobs are claimed: ${problem}.`)
    this.#wasWritable = problem === undefined
    return this.#wasWritable
  }

  #findProblem(): string | undefined {
    try {
      this.#ensureFolders()
    } catch (error) {
      return messageOf(error).replace(/\.$/, '')
    }
    return this.#folders.map(problemOf).find((problem) => problem !== undefined)
  }
}

function problemOf(folder: string): string | undefined {
  try {
    accessSync(folder, constants.W_OK)
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize < neededBytes ? `the disk of ${folder} is full; free space` : undefined
  } catch (error) {
    return `${folder} cannot be written: ${messageOf(error)}`
  }
}
