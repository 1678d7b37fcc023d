import { accessSync, constants, existsSync, mkdirSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { FatalError } from './exit-codes.ts'
import { messageOf, warn } from './log.ts'

// Enough for the journal, the undelivered output and the script of a job.
const neededBytes = 2 * 1024 * 1024

/** Creates the state folder. Throws `FatalError` if it cannot be used. */
export function prepareState(folder: string): void {
  try {
    makeFolder(folder)
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const advice = 'Make it writable, or use another --state-dir.'
    throw new FatalError('stateUnusable', `The state folder ${folder} cannot be used: ${messageOf(error)}. ${advice}`)
  }
}

// The recursive mode of Node.js does not end below /proc.
function makeFolder(path: string): void {
  if (existsSync(path)) return
  makeFolder(dirname(path))
  mkdirSync(path, { mode: 0o700 })
}

/** The folders that a job needs. */
export class Storage {
  readonly #folders: string[]
  #wasWritable = true

  constructor(folders: string[]) {
    this.#folders = folders
  }

  /** Whether all folders can be written and have space. Warns once if they do not. */
  get isWritable(): boolean {
    const problem = this.#folders.map(problemOf).find((found) => found !== undefined)
    if (problem && this.#wasWritable) warn(`No jobs are claimed: ${problem}.`)
    this.#wasWritable = problem === undefined
    return this.#wasWritable
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
