import { type ChildProcess, spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { waitFor } from './wait-for.ts'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const running = new Set<ChildProcess>()

// A test that runs out of time leaves none behind.
afterAll(() => running.forEach((child) => child.kill('SIGKILL')))

/** How a command ended, and what it wrote. */
export interface Ended {
  exitCode: number | null
  out: string
  err: string
}

/** The command line of one person on one machine: its settings are in a folder of its own. */
export class Plat {
  readonly #environment: NodeJS.ProcessEnv
  #folder: string | undefined

  constructor(folder: string, environment: Record<string, string>) {
    this.#environment = {
      PATH: process.env['PATH'],
      // Hundreds of commands run the same code.
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      HOME: folder,
      XDG_CONFIG_HOME: `${folder}/config`,
      ...environment,
    }
  }

  /** The same machine with other variables in the environment. */
  with(environment: Record<string, string | undefined>): Plat {
    const other = new Plat('', {})
    Object.assign(other.#environment, this.#environment, environment)
    other.#folder = this.#folder
    return other
  }

  /** The same in another folder than that of the tests. */
  in(folder: string): Plat {
    const other = this.with({})
    other.#folder = folder
    return other
  }

  /** Runs a command to its end. */
  run(args: readonly string[], input = ''): Promise<Ended> {
    return this.start(args, input).ended
  }

  /** Runs a command that shall succeed; answers what it prints. */
  async prints(args: readonly string[], input?: string): Promise<string> {
    const { exitCode, out, err } = await this.run(args, input)
    if (exitCode !== 0) throw new Error(`plat ${args.join(' ')} ended with ${exitCode}: ${err}`)
    return out
  }

  /** Runs a command that shall print one JSON document, and answers that. */
  async json(args: readonly string[], input?: string): Promise<any> {
    const words = args.includes('--') ? args.indexOf('--') : args.length
    return JSON.parse(await this.prints(args.toSpliced(words, 0, '--json'), input))
  }

  /** Starts a command. */
  start(args: readonly string[], input = '') {
    const child = spawn(process.execPath, [main, ...args], { env: this.#environment, cwd: this.#folder })
    running.add(child)
    let err = ''
    child.stderr.on('data', (part: Buffer) => (err += part.toString()))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const exit = new Promise<number | null>((resolve) => child.on('close', resolve))
    const ended = Promise.all([exit, text(child.stdout)]).then(([exitCode, out]): Ended => {
      running.delete(child)
      return { exitCode, out, err }
    })
    return {
      ended,
      says: (pattern: RegExp) => waitFor(`${pattern} is said`, async () => pattern.test(err)),
      interrupt: () => child.kill('SIGINT'),
    }
  }
}
