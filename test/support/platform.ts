import { execFile } from 'node:child_process'
import { delimiter, dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expectStatus } from '../conformance/support/answer.ts'
import { connect, type Platform } from '../conformance/support/platform.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { isLong } from './long.ts'
import { Program } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

const projectDir = fileURLToPath(new URL('../..', import.meta.url))
const shell = promisify(execFile)

/** Settings of the machine that runs the tests are not those of a platform under test. */
const ownEnvironment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PLAT|AWS)_/.test(name)))

/**
 * Each thread loads all that the platform answers with, a quarter of the work of a start. Where much is at once a test asks for two,
 * the default, also of long tests and verification runs.
 */
const ofShortTests = process.env['VITEST'] !== undefined && !isLong ? { PLAT_FUNCTION_THREADS: '1' } : {}

/** The administrator that platforms under test are set up with. */
export const options = {
  username: 'ada',
  password: 'correct horse battery',
}

/** The real platform as a process of its own, on data of its own. Disposing ends it and removes the data. */
export class PlatformProcess implements AsyncDisposable {
  /** The address stays the same from start to start. */
  readonly url: string
  readonly #environment: NodeJS.ProcessEnv
  readonly #removeData: () => PromiseLike<void>
  readonly #withFaults: boolean
  #program: Program

  private constructor(
    url: string,
    environment: NodeJS.ProcessEnv,
    program: Program,
    removeData: () => PromiseLike<void>,
    withFaults: boolean,
  ) {
    this.url = url
    this.#environment = { ...environment, PLAT_PORT: new URL(url).port }
    this.#program = program
    this.#removeData = removeData
    this.#withFaults = withFaults
  }

  /** Starts a platform that was never set up, with short intervals and further settings; `withFaults` gives its emulators fault switches. */
  static async start(settings: Record<string, string> = {}, { withFaults = false } = {}): Promise<PlatformProcess> {
    const data = await temporaryFolder()
    const environment = {
      ...ownEnvironment,
      PLAT_PORT: '0',
      // The one that it had last: the port after the API's may be somebody else's by the time of a restart.
      PLAT_REGISTRY_PORT: '0',
      PLAT_DATA_DIR: data.path,
      PLAT_HEARTBEAT_INTERVAL_SECONDS: '2',
      PLAT_SWEEP_INTERVAL_SECONDS: '1',
      PLAT_OUTBOX_RETRY_SECONDS: '2',
      PLAT_LOG_LEVEL: 'warn',
      PLAT_VALIDATE_RESPONSES: '1',
      ...ofShortTests,
      ...settings,
    }
    await using starting = new AsyncDisposableStack()
    starting.use(data)
    const program = starting.use(run(environment, withFaults))
    const url = await ready(program)
    starting.move()
    return new PlatformProcess(url, environment, program, () => data[Symbol.asyncDispose](), withFaults)
  }

  /** Starts again on the same data and port, after a kill or a stop; with further settings for this one run. */
  async restart(settings: Record<string, string> = {}): Promise<void> {
    this.#program = run({ ...this.#environment, ...settings }, this.#withFaults)
    await ready(this.#program)
  }

  /** How it ends by itself, as it does at an armed failpoint. */
  get ended(): Program['ended'] {
    return this.#program.ended
  }

  /** The folder of its data. */
  get dataDir(): string {
    return this.#environment['PLAT_DATA_DIR'] ?? ''
  }

  /** All that it has written since it was started last. */
  get text(): string {
    return this.#program.text
  }

  /** The match of a pattern in what it writes from its last start on. */
  writes(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#program.writes(pattern)
  }

  /** Ends it as a power cut would. */
  kill(): Promise<void> {
    return this.#program.kill()
  }

  /** Asks it to stop; answers how it ended. */
  stop(): Program['ended'] {
    this.#program.terminate()
    return this.#program.ended
  }

  /** Runs a command of the project in the platform's environment; answers what it prints. */
  async command(line: string): Promise<string> {
    const { stdout } = await shell('sh', ['-c', line], { cwd: projectDir, env: this.#environment })
    return stdout
  }

  /** Its API, held to the contract. Signs in as the administrator of `setUp`. */
  api(): Promise<Platform> {
    return connect({ ...options, baseUrl: this.url })
  }

  /** The body that completes setup, with the token that the platform's own command prints. */
  async setupBody(): Promise<object> {
    const response = await fetch(`${this.url}/api/v1/setup/complete`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    const { howToRetrieve }: any = await response.json()
    const initialAdminToken = (await this.command(howToRetrieve)).replace(/\n$/, '')
    return {
      platformName: 'Test Platform',
      publicUrl: 'https://platform.example.com',
      timezone: 'Europe/Berlin',
      adminUsername: options.username,
      adminEmail: 'ada@example.com',
      adminPassword: options.password,
      initialAdminToken,
    }
  }

  /** Completes setup; answers the API. */
  async setUp(): Promise<Platform> {
    const api = await this.api()
    expectStatus(await api.anonymous.post('/api/v1/setup/complete', await this.setupBody()), 200)
    return api
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await this.#removeData()
  }
}

/** Runs what `npm start` runs, with the Node that runs the tests; on request with emulators that have fault switches. */
const run = (environment: NodeJS.ProcessEnv, withFaults: boolean): Program => {
  const main = withFaults ? 'test/support/emulators/platform.ts' : '$&'
  const command = packageFile.scripts.start.replace(/packages\S+main\.ts/, main)
  const path = [dirname(process.execPath), environment['PATH']].join(delimiter)
  return new Program('sh', ['-c', command], { cwd: projectDir, env: { ...environment, PATH: path } })
}

async function ready(program: Program): Promise<string> {
  const [, url = ''] = await program.writes(/Platform ready at (\S+)/)
  return url
}
