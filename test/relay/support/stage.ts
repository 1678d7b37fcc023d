import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import type { Server } from 'node:net'
import { delimiter, join } from 'node:path'
import { expect, vi } from 'vitest'
import { buildRelay } from '../../../scripts/build-relay.ts'
import { Program } from '../../support/program.ts'
import { isRunning } from '../../support/script.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { FakePlatform } from './fake-platform.ts'

let bundleText: string | undefined

export async function writeBundle(folder: string): Promise<string> {
  const path = join(folder, 'relay.mjs')
  if (bundleText === undefined) await buildRelay(path)
  else await writeFile(path, bundleText)
  bundleText ??= await readFile(path, 'utf8')
  return path
}

interface RelaySettings {
  namespace?: string
  /** Words before the command of the relay. */
  prefix?: string[]
  args?: string[]
  environment?: Record<string, string>
}

export class RelayProcess extends Program {
  constructor(bundle: string, { args = [], environment = {}, namespace, prefix = [] }: RelaySettings = {}) {
    const command = [(node ??= olderNode()), bundle, ...args]
    const [program = '', ...rest] = [...(namespace ? ['ip', 'netns', 'exec', namespace] : prefix), ...command]
    super(program, rest, {
      cwd: join(bundle, '..'),
      env: { PATH: process.env['PATH'], ...environment },
    })
  }

  get exitCode(): Promise<number | null> {
    return this.ended.then(({ exitCode }) => exitCode)
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.signal(signal)
    return this.exitCode
  }
}

let node: string | undefined

/** Returns the system's Node.js if its version is at least 20, else the one that runs the tests. */
function olderNode(): string {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'))
  const path = folders.map((folder) => join(folder, 'node')).find((candidate) => existsSync(candidate))
  if (path === undefined) return process.execPath
  const majorVersion = Number(/^v(\d+)/.exec(execFileSync(path, ['--version'], { encoding: 'utf8' }))?.[1])
  return majorVersion >= 20 ? path : process.execPath
}

interface StageSettings extends RelaySettings {
  /** The port of the platform. By default, it opens one. */
  port?: Server
  prepare?: (platform: FakePlatform) => void
}

export class Stage {
  readonly folder: string
  readonly platform: FakePlatform
  readonly token: string
  relay: RelayProcess
  readonly #bundle: string
  readonly #relays: RelayProcess[] = []
  readonly #removeFolder: () => PromiseLike<void>

  private constructor(
    bundle: string,
    platform: FakePlatform,
    settings: StageSettings,
    removeFolder: () => PromiseLike<void>,
  ) {
    this.folder = join(bundle, '..')
    this.#bundle = bundle
    this.#removeFolder = removeFolder
    this.platform = platform
    this.token = platform.issueToken()
    this.relay = this.startRelay(settings)
  }

  static async start(settings: StageSettings = {}): Promise<Stage> {
    const platform = await FakePlatform.start(settings.port)
    settings.prepare?.(platform)
    const folder = await temporaryFolder()
    return new Stage(await writeBundle(folder.path), platform, settings, () => folder[Symbol.asyncDispose]())
  }

  get stateFolder(): string {
    return join(this.folder, 'state')
  }

  startRelay({ args = [], environment = {}, namespace }: RelaySettings = {}): RelayProcess {
    this.relay = new RelayProcess(this.#bundle, {
      args: ['--server', this.platform.url, '--state-dir', this.stateFolder, ...args],
      environment: { PLAT_ENROLLMENT_TOKEN: this.token, ...environment },
      ...(namespace && { namespace }),
    })
    this.#relays.push(this.relay)
    return this.relay
  }

  file(name: string): string {
    return join(this.folder, name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#relays.map((relay) => relay.end('SIGKILL')))
    await this.platform.close()
    await this.#removeFolder()
  }
}

export const ended = (pid: number | string): Promise<void> =>
  vi.waitFor(async () => expect(await isRunning(String(pid))).toBe(false), { timeout: 20_000 })
