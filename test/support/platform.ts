import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expectStatus } from '../conformance/support/answer.ts'
import { connect, type Platform } from '../conformance/support/platform.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { shortTestSettings } from './long.ts'
import { Program } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { waitFor } from './wait-for.ts'

const projectDir = fileURLToPath(new URL('../..', import.meta.url))
const shell = promisify(execFile)

/** Settings of the test machine must not affect the platform. */
export const ownEnvironment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(PLAT|AWS)_/.test(name)),
)

export const options = { username: 'ada', password: 'correct horse battery' }

export const setupRequest = (initialAdminToken: string | undefined) => ({
  platformName: 'Test Platform',
  publicUrl: 'https://platform.example.com',
  timezone: 'Europe/Berlin',
  adminUsername: options.username,
  adminEmail: 'ada@example.com',
  adminPassword: options.password,
  initialAdminToken,
})

interface ProcessOptions {
  withFaults?: boolean
  /** The file of `setSystemClock`. */
  clockFile?: string
}

export class PlatformProcess implements AsyncDisposable {
  readonly url: string
  readonly #environment: NodeJS.ProcessEnv
  readonly #data: AsyncDisposable
  readonly #options: ProcessOptions
  #program: Program

  private constructor(
    url: string,
    environment: NodeJS.ProcessEnv,
    program: Program,
    data: AsyncDisposable,
    options: ProcessOptions,
  ) {
    this.url = url
    this.#environment = { ...environment, PLAT_PORT: new URL(url).port }
    this.#program = program
    this.#data = data
    this.#options = options
  }

  static async start(settings: Record<string, string> = {}, options: ProcessOptions = {}): Promise<PlatformProcess> {
    const data = await temporaryFolder()
    const environment = {
      ...ownEnvironment,
      PLAT_PORT: '0',
      // After a restart, another process may use the earlier port of the registry.
      PLAT_REGISTRY_PORT: '0',
      PLAT_DATA_DIR: data.path,
      PLAT_HEARTBEAT_INTERVAL_SECONDS: '2',
      PLAT_SWEEP_INTERVAL_SECONDS: '1',
      PLAT_OUTBOX_RETRY_SECONDS: '2',
      PLAT_LOG_LEVEL: 'warn',
      PLAT_VALIDATE_RESPONSES: '1',
      ...shortTestSettings,
      ...settings,
    }
    await using starting = new AsyncDisposableStack()
    starting.use(data)
    const program = starting.use(run(environment, options))
    const url = await ready(program)
    starting.move()
    return new PlatformProcess(url, environment, program, data, options)
  }

  async restart(settings: Record<string, string> = {}): Promise<void> {
    this.#program = run({ ...this.#environment, ...settings }, this.#options)
    await ready(this.#program)
  }

  get ended(): Program['ended'] {
    return this.#program.ended
  }

  get dataDir(): string {
    return this.#environment['PLAT_DATA_DIR'] ?? ''
  }

  get text(): string {
    return this.#program.text
  }

  writes = (pattern: RegExp): Promise<RegExpExecArray> => this.#program.writes(pattern)

  kill = (): Promise<void> => this.#program.kill()

  stop(): Program['ended'] {
    this.#program.signal('SIGTERM')
    return this.#program.ended
  }

  async command(line: string): Promise<string> {
    const { stdout } = await shell('sh', ['-c', line], { cwd: projectDir, env: this.#environment })
    return stdout
  }

  api(): Promise<Platform> {
    return connect({ ...options, baseUrl: this.url })
  }

  async setupBody(): Promise<object> {
    const response = await fetch(`${this.url}/api/v1/setup/complete`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    const { howToRetrieve }: any = await response.json()
    const initialAdminToken = (await this.command(howToRetrieve)).replace(/\n$/, '')
    return setupRequest(initialAdminToken)
  }

  async setUp(): Promise<Platform> {
    const api = await this.api()
    expectStatus(await api.anonymous.post('/api/v1/setup/complete', await this.setupBody()), 200)
    return api
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    // Watchdogs cannot remove containers without this folder.
    const containers = join(this.dataDir, 'modules/run/runc')
    await waitFor('the end of the containers', async () => (await readdir(containers).catch(() => [])).length === 0)
    await this.#data[Symbol.asyncDispose]()
  }
}

const run = (environment: NodeJS.ProcessEnv, { withFaults = false, clockFile }: ProcessOptions): Program => {
  const mainFile = withFaults ? 'test/support/emulators/platform.ts' : '$&'
  const preload =
    clockFile === undefined ? '' : `--import '${projectDir}test/support/system-clock.ts?file=${clockFile}' `
  const command = packageFile.scripts.start.replace(/packages\S+main\.ts/, preload + mainFile)
  const path = [dirname(process.execPath), environment['PATH']].join(delimiter)
  return new Program('sh', ['-c', command], { cwd: projectDir, env: { ...environment, PATH: path } })
}

async function ready(program: Program): Promise<string> {
  const [, url = ''] = await program.writes(/Platform ready at (\S+)/)
  return url
}
