import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll } from 'vitest'
import { waitFor } from './wait-for.ts'

const open = new Set<Terminal>()

// A test that runs out of time never gets to close what it has opened.
afterAll(() => Promise.all([...open].map((terminal) => terminal[Symbol.asyncDispose]())))

/** What a command has written so far, to both streams, and its exit code once it has ended. */
export interface Seen {
  output: string
  exitCode: number | undefined
}

const mark = '\u0001ended\u0001'

/** A shell that is typed into, line after line, as a person does. */
export class Terminal implements AsyncDisposable {
  readonly #child: ChildProcess
  #text = ''

  constructor(options: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.#child = spawn('bash', ['--norc', '--noprofile'], { ...options, detached: true, stdio: 'pipe' })
    open.add(this)
    const keep = (part: Buffer) => (this.#text += part.toString())
    this.#child.stdout?.on('data', keep)
    this.#child.stderr?.on('data', keep)
    this.#child.stdin?.on('error', () => {})
    // One stream, so that what is written comes in its order.
    this.#child.stdin?.write('exec 2>&1\n')
  }

  /** All that was written since it was opened. */
  get text(): string {
    return this.#text
  }

  /** Types a command; answers how to look at what comes of it. */
  type(command: string): () => Seen {
    const from = this.#text.length
    this.#child.stdin?.write(`{ ${command}\n} </dev/null; printf '\\n${mark}%s\\n' $?\n`)
    return () => {
      const [output = '', end] = this.#text.slice(from).split(`\n${mark}`)
      return { output, exitCode: end?.includes('\n') === true ? Number.parseInt(end, 10) : undefined }
    }
  }

  /** Types a command and waits for its end. */
  async run(command: string): Promise<Seen> {
    const look = this.type(command)
    return waitFor(`${command} ends`, async () => (look().exitCode === undefined ? undefined : look()))
  }

  /** What Ctrl-C does to all that runs in it. */
  interrupt(): void {
    this.#signal('SIGINT')
  }

  /** Whether nothing runs in it any more, not even its shell. */
  get isEmpty(): boolean {
    return !this.#signal(0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    open.delete(this)
    const { exitCode, signalCode } = this.#child
    const ended = exitCode === null && signalCode === null ? once(this.#child, 'exit') : undefined
    this.#signal('SIGKILL')
    await ended
  }

  /** Answers whether there was anybody to hear it. */
  #signal(name: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(-Number(this.#child.pid), name)
    } catch {
      return false
    }
  }
}
