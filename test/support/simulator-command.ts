import { projectDir, readState, type State } from '../simulator/state.ts'
import { deployment } from './components.ts'
import { readProcesses } from './local-runtime.ts'
import { ownEnvironment } from './platform.ts'
import { Program } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

interface Ending {
  exitCode: number | null
  text: string
}

export class SimulatorCommand implements AsyncDisposable {
  readonly folder: string
  readonly functions: string
  readonly #parent: AsyncDisposable

  private constructor(parent: AsyncDisposable & { path: string }, functionsDir: string) {
    this.folder = `${parent.path}/simulator`
    this.functions = functionsDir
    this.#parent = parent
  }

  static async create(): Promise<SimulatorCommand> {
    return new SimulatorCommand(await temporaryFolder(), (await deployment()).functionsDir)
  }

  begin(args: readonly string[], settings: Record<string, string> = {}): Program {
    const env = { ...ownEnvironment, PLAT_SIMULATOR_DIR: this.folder, ...settings }
    return new Program(process.execPath, ['test/simulator/main.ts', ...args], { cwd: projectDir, env })
  }

  async run(args: readonly string[], settings: Record<string, string> = {}): Promise<Ending> {
    const program = this.begin(args, settings)
    const { exitCode } = await program.ended
    return { exitCode, text: program.text }
  }

  start(...args: string[]): Promise<Ending> {
    return this.run(['--functions', this.functions, ...args])
  }

  get state(): State | undefined {
    return readState(this.folder)
  }

  async processes(): Promise<number[]> {
    const processes = await readProcesses('environ')
    return processes.filter(({ text }) => text.includes(this.folder)).map(({ id }) => id)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run(['--stop'])
    await this.#parent[Symbol.asyncDispose]()
  }
}
