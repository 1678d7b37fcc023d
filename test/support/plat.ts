import { type ChildProcess, spawn } from 'node:child_process'
import { buffer } from 'node:stream/consumers'
import { afterAll } from 'vitest'
import { bundlePlat } from './plat-bundle.ts'
import { waitFor } from './wait-for.ts'

const mainFile = await bundlePlat()
const runningChildren = new Set<ChildProcess>()

// A test that times out must not leave processes.
afterAll(() => runningChildren.forEach((child) => child.kill('SIGKILL')))

export interface Ended {
  exitCode: number | null
  out: string
  /** The bytes of standard output; `out` is the same output as text. */
  bytes: Buffer
  err: string
}

export class Plat {
  readonly #environment: NodeJS.ProcessEnv
  #folder: string | undefined

  constructor(folder: string, environment: Record<string, string>) {
    this.#environment = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      HOME: folder,
      XDG_CONFIG_HOME: `${folder}/config`,
      ...environment,
    }
  }

  with(environment: Record<string, string | undefined>): Plat {
    const copy = new Plat('', {})
    Object.assign(copy.#environment, this.#environment, environment)
    copy.#folder = this.#folder
    return copy
  }

  in(folder: string): Plat {
    const copy = this.with({})
    copy.#folder = folder
    return copy
  }

  run(args: readonly string[], input = ''): Promise<Ended> {
    return this.start(args, input).ended
  }

  async prints(args: readonly string[], input?: string): Promise<string> {
    const { exitCode, out, err } = await this.run(args, input)
    if (exitCode !== 0) throw new Error(`plat ${args.join(' ')} ended with ${exitCode}: ${err}`)
    return out
  }

  async json(args: readonly string[], input?: string): Promise<any> {
    const words = args.includes('--') ? args.indexOf('--') : args.length
    return JSON.parse(await this.prints(args.toSpliced(words, 0, '--json'), input))
  }

  start(args: readonly string[], input = '') {
    const child = spawn(process.execPath, [mainFile, ...args], { env: this.#environment, cwd: this.#folder })
    runningChildren.add(child)
    let err = ''
    child.stderr.on('data', (part: Buffer) => (err += part.toString()))
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const exit = new Promise<number | null>((resolve) => child.on('close', resolve))
    const ended = Promise.all([exit, buffer(child.stdout)]).then(([exitCode, bytes]): Ended => {
      runningChildren.delete(child)
      return { exitCode, out: bytes.toString(), bytes, err }
    })
    return {
      ended,
      says: (pattern: RegExp) => waitFor(`output of ${pattern}`, async () => pattern.test(err)),
      interrupt: () => child.kill('SIGINT'),
    }
  }
}
