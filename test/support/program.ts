import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'vitest'
import { waitFor } from './wait-for.ts'

/** What runs, by the number of its process group. */
const running = new Map<number, Program>()

/** Ends all that this process has started and that has not ended. */
export const endAll = () => running.forEach((_, group) => signalGroup(group, 'SIGKILL'))

/** How much of what a program has written last is shown beside a failure, in characters. */
const shownLength = 4000

/** Shows what the programs have written that run just now: why a test failed is often there. */
export function showPrograms(): void {
  for (const [group, program] of running) {
    const text = program.takeUnshown().slice(-shownLength)
    if (text !== '') console.error(`What program ${group} wrote last:\n${text}`)
  }
}

/** The same beside a test that failed. */
export const showBesideFailure = ({ task }: TestContext): void => void (task.result?.state === 'fail' && showPrograms())

// A test that runs out of time never gets to dispose of what it started. Scripts use programs as well.
if (process.env['VITEST']) {
  const { afterAll, afterEach } = await import('vitest')
  afterEach(showBesideFailure)
  afterAll(endAll)
} else process.once('exit', endAll)

/** Signals all processes of a group; answers whether there were any. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}

/** A program under test, in a process group of its own. */
export class Program implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #group: number
  readonly #ended: Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>
  #text = ''
  #isRead = false
  #shownUpTo = 0

  constructor(command: string, args: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.#child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#group = Number(this.#child.pid)
    running.set(this.#group, this)
    const keep = (part: Buffer) => (this.#text += part.toString())
    this.#child.stdout?.on('data', keep)
    this.#child.stderr?.on('data', keep)
    // What it wrote last may arrive after its end.
    this.#child.once('close', () => (this.#isRead = true))
    this.#ended = once(this.#child, 'exit').then(([exitCode, signal]) => ({ exitCode, signal }))
  }

  get pid(): number {
    return this.#group
  }

  /** All that it has written so far, to both streams. */
  get text(): string {
    return this.#text
  }

  /** What it has written since this was asked last. */
  takeUnshown(): string {
    const from = this.#shownUpTo
    this.#shownUpTo = this.#text.length
    return this.#text.slice(from)
  }

  /** The match of a pattern in what it writes; fails when it ends before. */
  writes(pattern: RegExp): Promise<RegExpExecArray> {
    return waitFor(`${pattern} is written`, async () => {
      const match = pattern.exec(this.#text)
      if (match === null && this.#isRead) throw new Error(`The program ended:\n${this.#text}`)
      return match ?? undefined
    })
  }

  /** How it ends. */
  get ended(): Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }> {
    return this.#ended
  }

  /** Asks it to stop, and it alone, as a supervisor does. */
  terminate(): void {
    this.#child.kill('SIGTERM')
  }

  /** Interrupts it and all that it has started, as Ctrl-C in a terminal does. */
  interrupt(): void {
    signalGroup(this.#group, 'SIGINT')
  }

  /** Ends it and all that it has started at once: no handler runs, no buffer is flushed. */
  async kill(): Promise<void> {
    signalGroup(this.#group, 'SIGKILL')
    await this.#ended
    await waitFor('its processes are gone', async () => !signalGroup(this.#group, 0))
    running.delete(this.#group)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}
