import { isUtf8 } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Executor } from './executor/executor.ts'
import { oneLine } from './facts.ts'
import { messageOf, warn } from './log.ts'

const timeLimitMs = 10_000
const maxOutputBytes = 16_384
const maxFacts = 32
const maxValueLength = 200
const keyPattern = /^[a-z0-9](?:[a-z0-9._/-]{0,55}[a-z0-9])?$/

/**
 * Runs the programs of a folder, as the user of scripts, and reads `key=value` lines from their output. A program that
 * fails, takes too long or writes too much contributes no facts.
 */
export class FactPrograms {
  readonly #folder: string | undefined
  readonly #executor: Executor
  #lastProblems = ''

  constructor(folder: string | undefined, executor: Executor) {
    this.#folder = folder
    this.#executor = executor
  }

  async run(signal: AbortSignal): Promise<Record<string, string>> {
    if (this.#folder === undefined) return {}
    const problems: string[] = []
    const facts = new Map<string, string>()
    for (const path of programsIn(this.#folder, problems)) {
      if (signal.aborted) break
      const output = await this.#outputOf(path, problems, signal)
      for (const [name, value] of output === undefined ? [] : parseFacts(output, path, problems)) {
        if (facts.size < maxFacts || facts.has(name)) facts.set(name, value)
        else problems.push(`more than ${maxFacts} facts; ${name} is ignored`)
      }
    }
    this.#report(problems)
    return Object.fromEntries([...facts].toSorted(([one], [other]) => (one < other ? -1 : 1)))
  }

  async #outputOf(path: string, problems: string[], signal: AbortSignal): Promise<Buffer | undefined> {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    const timeout = new AbortController()
    const runningScript = this.#executor.start({
      jobId: `facts-${randomBytes(6).toString('hex')}`,
      nodeName: 'facts',
      script: scriptFor(path),
      onOutput: (stream, bytes) => {
        if (stream !== 'stdout') return
        sizeBytes += bytes.length
        if (sizeBytes <= maxOutputBytes) chunks.push(bytes)
        else runningScript.stop('force')
      },
      onSpawned: () => {},
    })
    const timerOptions = { signal: AbortSignal.any([timeout.signal, signal]) }
    const timer = sleep(timeLimitMs, 'late' as const, timerOptions).catch(() => 'late' as const)
    const firstResult = await Promise.race([runningScript.exitCode, timer])
    timeout.abort()
    if (firstResult === 'late') runningScript.stop('force')
    const code = await runningScript.exitCode
    const problem =
      firstResult === 'late'
        ? `took longer than ${timeLimitMs / 1000} s`
        : sizeBytes > maxOutputBytes
          ? `wrote more than ${maxOutputBytes} bytes`
          : code === 0
            ? undefined
            : `ended with exit code ${code}`
    if (problem === undefined) return Buffer.concat(chunks)
    problems.push(`${path} ${problem}`)
    return undefined
  }

  // Warns again only if the problems have changed.
  #report(problems: readonly string[]): void {
    const text = problems.slice(0, 10).join('; ')
    if (text !== '' && text !== this.#lastProblems) warn(`Facts of --facts-dir are incomplete: ${text}.`)
    this.#lastProblems = text
  }
}

// On a system with `timeout`, the program ends even if this relay is killed.
const scriptFor = (path: string): string =>
  `#!/bin/sh\nlimit=$(command -v timeout)\nexec \${limit:+"$limit" -s KILL ${timeLimitMs / 1000 + 1}} '${path.replaceAll("'", String.raw`'\''`)}'\n`

/**
 * Returns the programs of a folder in the order of their names. Rejects programs that other users could change,
 * because the programs may run as the user of the relay.
 */
function programsIn(folder: string, problems: string[]): string[] {
  const tryRead = <Found>(path: string, read: () => Found): Found | undefined => {
    try {
      return read()
    } catch (error) {
      problems.push(`${path}: ${messageOf(error)}`)
      return undefined
    }
  }
  const names = tryRead(folder, () => {
    requireProtected(statSync(folder))
    return readdirSync(folder)
  })
  const paths = (names ?? []).filter((name) => !name.startsWith('.')).map((name) => join(folder, name))
  return paths.toSorted().filter((path) =>
    tryRead(path, () => {
      const stats = statSync(path)
      const isProgram = stats.isFile() && (stats.mode & 0o111) !== 0
      if (isProgram) requireProtected(stats)
      return isProgram
    }),
  )
}

function requireProtected({ uid, mode }: Stats): void {
  if ((uid !== 0 && uid !== process.getuid?.()) || mode & 0o022)
    throw new Error('it must belong to root or the user of the relay, and others must not be able to write it')
}

function parseFacts(output: Buffer, path: string, problems: string[]): [string, string][] {
  if (!isUtf8(output)) {
    problems.push(`the output of ${path} is not UTF-8`)
    return []
  }
  const lines = output
    .toString()
    .split('\n')
    .filter((line) => line.trim() !== '')
  return lines.flatMap((line): [string, string][] => {
    const separatorIndex = line.indexOf('=')
    const name = line.slice(0, Math.max(0, separatorIndex)).trim()
    if (keyPattern.test(name)) return [[name, oneLine(line.slice(separatorIndex + 1), maxValueLength)]]
    problems.push(`${path} wrote a line that is not "key=value": ${oneLine(line, 60)}`)
    return []
  })
}
