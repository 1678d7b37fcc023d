import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll } from 'vitest'
import { waitFor } from './wait-for.ts'

const open = new Set<Terminal>()

// A test that times out does not close its terminals.
afterAll(() => Promise.all([...open].map((terminal) => terminal[Symbol.asyncDispose]())))

/** The output so far, and the exit code after the end. */
export interface CommandResult {
  output: string
  exitCode: number | undefined
}

const mark = '\u0001ended\u0001'

/** An interactive shell. */
export class Terminal implements AsyncDisposable {
  readonly #child: ChildProcess
  #text = ''

  constructor(options: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.#child = spawn('bash', ['--norc', '--noprofile'], { ...options, detached: true, stdio: 'pipe' })
    open.add(this)
    const append = (part: Buffer) => (this.#text += part.toString())
    this.#child.stdout?.on('data', append)
    this.#child.stderr?.on('data', append)
    this.#child.stdin?.on('error', () => {})
    // One stream keeps the order of the output.
    this.#child.stdin?.write('exec 2>&1\n')
  }

  get text(): string {
    return this.#text
  }

  /** Types a command without waiting for its end. */
  type(command: string): () => CommandResult {
    const from = this.#text.length
    this.#child.stdin?.write(`{ ${command}\n} </dev/null; printf '\\n${mark}%s\\n' $?\n`)
    return () => {
      const [output = '', end] = this.#text.slice(from).split(`\n${mark}`)
      return { output, exitCode: end?.includes('\n') === true ? Number.parseInt(end, 10) : undefined }
    }
  }

  /** Types a command and waits for its end. */
  async run(command: string): Promise<CommandResult> {
    const result = this.type(command)
    return waitFor(`${command} ends`, async () => (result().exitCode === undefined ? undefined : result()))
  }

  /** Presses Ctrl-C. */
  interrupt(): void {
    this.#signal('SIGINT')
  }

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

  #signal(name: NodeJS.Signals | 0): boolean {
    try {
      return process.kill(-Number(this.#child.pid), name)
    } catch {
      return false
    }
  }
}
