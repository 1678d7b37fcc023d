import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { buildRelay } from '../../../scripts/build-relay.ts'

/** The bundle: one for all tests of a file. */
let text: string | undefined

/** A temporary folder with the bundle of the relay in it; removed by `remove`. */
export class Workplace {
  readonly folder: string

  private constructor(folder: string) {
    this.folder = folder
  }

  static async make(): Promise<Workplace> {
    const workplace = new Workplace(await mkdtemp(join(tmpdir(), 'relay-test-')))
    if (text === undefined) await buildRelay(workplace.bundle)
    else await writeFile(workplace.bundle, text)
    text ??= await readFile(workplace.bundle, 'utf8')
    return workplace
  }

  get bundle(): string {
    return join(this.folder, 'relay.mjs')
  }

  get stateFolder(): string {
    return join(this.folder, 'state')
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}

export type Start = {
  bundle: string
  args?: string[]
  environment?: Record<string, string>
  folder?: string
}

let node: string | undefined

/** The bundle at work as a process of its own, on the oldest Node there is. */
export class RelayProcess {
  readonly #child: ChildProcess
  readonly #changes = new EventEmitter()
  readonly exitCode: Promise<number | null>
  text = ''

  constructor({ bundle, args = [], environment = {}, folder }: Start) {
    this.#child = spawn((node ??= olderNode()), [bundle, ...args], {
      env: { PATH: process.env.PATH, ...environment },
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.text += text
        this.#changes.emit('change')
      })
    }
    this.exitCode = once(this.#child, 'close').then(([code]: (number | null)[]) => code ?? null)
  }

  get pid(): number {
    return this.#child.pid!
  }

  /** Returns when the relay has told a person this. */
  async said(words: string): Promise<void> {
    while (!this.text.includes(words)) await once(this.#changes, 'change')
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.#child.kill(signal)
    return this.exitCode
  }
}

/** The Node of the system where that is old enough to be interesting, else the one that runs the tests. */
function olderNode(): string {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'))
  const found = folders.map((folder) => join(folder, 'node')).find((path) => existsSync(path))
  if (found === undefined) return process.execPath
  const major = Number(/^v(\d+)/.exec(execFileSync(found, ['--version'], { encoding: 'utf8' }))?.[1])
  return major >= 20 ? found : process.execPath
}
