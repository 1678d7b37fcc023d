import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'vitest'
import { waitFor } from './wait-for.ts'

const runningPrograms = new Map<number, Program>()

export const endAll = () => runningPrograms.forEach((_, group) => signalGroup(group, 'SIGKILL'))

const shownLength = 4000

export function showPrograms(): void {
  for (const [group, program] of runningPrograms) {
    const text = program.takeUnshown().slice(-shownLength)
    if (text !== '') console.error(`Last output of program ${group}:\n${text}`)
  }
}

export const showBesideFailure = ({ task }: TestContext): void => void (task.result?.state === 'fail' && showPrograms())

// A test that times out does not dispose of its programs.
if (process.env['VITEST']) {
  const { afterAll, afterEach } = await import('vitest')
  afterEach(showBesideFailure)
  afterAll(endAll)
} else process.once('exit', endAll)

/** Ends this process when its parent ends. Ctrl-C signals both, and would end this process without its programs. */
export function endWithParent(dispose: () => Promise<void>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)
  process.on('disconnect', () => void dispose().finally(() => process.exit()))
}

function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}

interface ProgramOptions {
  cwd: string
  env: NodeJS.ProcessEnv
  input?: boolean
}

export class Program implements AsyncDisposable {
  /** The id of the process and of its process group. */
  readonly pid: number
  readonly ended: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>
  readonly #child: ChildProcess
  #text = ''
  #isRead = false
  #shownUpTo = 0

  constructor(command: string, args: readonly string[], { input = false, ...options }: ProgramOptions) {
    const stdio = [input ? 'pipe' : 'ignore', 'pipe', 'pipe'] as const
    this.#child = spawn(command, args, { ...options, detached: true, stdio: [...stdio] })
    this.pid = Number(this.#child.pid)
    runningPrograms.set(this.pid, this)
    const keep = (part: Buffer) => (this.#text += part.toString())
    this.#child.stdout?.on('data', keep)
    this.#child.stderr?.on('data', keep)
    this.#child.stdin?.on('error', () => {})
    // Output may arrive after the exit.
    this.#child.once('close', () => (this.#isRead = true))
    this.ended = once(this.#child, 'exit').then(([exitCode, signal]) => ({ exitCode, signal }))
  }

  get text(): string {
    return this.#text
  }

  takeUnshown(): string {
    const start = this.#shownUpTo
    this.#shownUpTo = this.#text.length
    return this.#text.slice(start)
  }

  write(input: string): void {
    this.#child.stdin?.write(input)
  }

  /** Waits for output that matches. Rejects if the program ends first or after the time limit of `waitFor`. */
  writes(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(`${pattern} is written`, async () => {
      const match = pattern.exec(this.#text)
      if (match === null && this.#isRead) throw new Error(`The program ended:\n${this.#text}`)
      return match ?? undefined
    })
  }

  get isGone(): boolean {
    return !signalGroup(this.pid, 0)
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** Signals the process, but not its children, as a supervisor does. */
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  interrupt(): void {
    signalGroup(this.pid, 'SIGINT')
  }

  async kill(): Promise<void> {
    signalGroup(this.pid, 'SIGKILL')
    await this.ended
    await waitFor('its processes are gone', async () => this.isGone)
    runningPrograms.delete(this.pid)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}
