import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'vitest'
import { waitFor } from './wait-for.ts'

/** Running programs by process group. */
const running = new Map<number, Program>()

/** Kills all programs of this process. */
export const endAll = () => running.forEach((_, group) => signalGroup(group, 'SIGKILL'))

/** Maximum output shown with a failure, in characters. */
const shownLength = 4000

/** Prints the last output of all programs, for the analysis of failures. */
export function showPrograms(): void {
  for (const [group, program] of running) {
    const text = program.takeUnshown().slice(-shownLength)
    if (text !== '') console.error(`What program ${group} wrote last:\n${text}`)
  }
}

/** Adds the output of programs to a failed test. */
export const showBesideFailure = ({ task }: TestContext): void => void (task.result?.state === 'fail' && showPrograms())

// A test that times out does not dispose of its programs.
if (process.env['VITEST']) {
  const { afterAll, afterEach } = await import('vitest')
  afterEach(showBesideFailure)
  afterAll(endAll)
} else process.once('exit', endAll)

/** Signals a process group. Returns whether it exists. */
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

/** A program in a process group of its own. */
export class Program implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #group: number
  readonly #ended: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>
  #text = ''
  #isRead = false
  #shownUpTo = 0

  /** With an `input` the program reads what `write` sends. */
  constructor(command: string, args: readonly string[], { input = false, ...options }: ProgramOptions) {
    const stdio = [input ? 'pipe' : 'ignore', 'pipe', 'pipe'] as const
    this.#child = spawn(command, args, { ...options, detached: true, stdio: [...stdio] })
    this.#group = Number(this.#child.pid)
    running.set(this.#group, this)
    const keep = (part: Buffer) => (this.#text += part.toString())
    this.#child.stdout?.on('data', keep)
    this.#child.stderr?.on('data', keep)
    this.#child.stdin?.on('error', () => {})
    // Output may arrive after the exit.
    this.#child.once('close', () => (this.#isRead = true))
    this.#ended = once(this.#child, 'exit').then(([exitCode, signal]) => ({ exitCode, signal }))
  }

  get pid(): number {
    return this.#group
  }

  /** All output so far, of both streams. */
  get text(): string {
    return this.#text
  }

  /** The output since the last call. */
  takeUnshown(): string {
    const from = this.#shownUpTo
    this.#shownUpTo = this.#text.length
    return this.#text.slice(from)
  }

  write(input: string): void {
    this.#child.stdin?.write(input)
  }

  /** Waits for output that matches. Rejects if the program exits first. */
  writes(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(`${pattern} is written`, async () => {
      const match = pattern.exec(this.#text)
      if (match === null && this.#isRead) throw new Error(`The program ended:\n${this.#text}`)
      return match ?? undefined
    })
  }

  get ended(): Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }> {
    return this.#ended
  }

  /** Whether all processes of the group have exited. */
  get isGone(): boolean {
    return !signalGroup(this.#group, 0)
  }

  /** Whether the process has exited. */
  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** Signals the process, but not its children, as a supervisor does. */
  signal(name: NodeJS.Signals): void {
    this.#child.kill(name)
  }

  /** Sends SIGINT to the process group, as Ctrl-C does. */
  interrupt(): void {
    signalGroup(this.#group, 'SIGINT')
  }

  /** Kills the process group. */
  async kill(): Promise<void> {
    signalGroup(this.#group, 'SIGKILL')
    await this.#ended
    await waitFor('its processes are gone', async () => this.isGone)
    running.delete(this.#group)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}
