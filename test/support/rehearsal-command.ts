import { readdir, readFile } from 'node:fs/promises'
import { inject } from 'vitest'
import { projectDir, readState, type State } from '../simulator/state.ts'
import { Program } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** Settings of the machine that runs the tests are not those of a deployment. */
const ownEnvironment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PLAT|AWS)_/.test(name)))

/** How a command ended, and all that it has written. */
interface Ending {
  exitCode: number | null
  text: string
}

/** `npm run deploy:rehearsal` in a folder of its own, with the functions that are built. Disposing ends what runs there. */
export class RehearsalCommand implements AsyncDisposable {
  readonly folder: string
  readonly functions = inject('functionsDir')
  readonly #remove: () => PromiseLike<void>

  private constructor(folder: string, remove: () => PromiseLike<void>) {
    this.folder = `${folder}/rehearsal`
    this.#remove = remove
  }

  static async create(): Promise<RehearsalCommand> {
    const { path, ...folder } = await temporaryFolder()
    return new RehearsalCommand(path, () => folder[Symbol.asyncDispose]())
  }

  /** Begins it, and lets it run. */
  begin(args: readonly string[], settings: Record<string, string> = {}): Program {
    const env = { ...ownEnvironment, PLAT_REHEARSAL_DIR: this.folder, ...settings }
    return new Program(process.execPath, ['test/simulator/main.ts', ...args], { cwd: projectDir, env })
  }

  /** Runs it to its end. */
  async run(args: readonly string[], settings: Record<string, string> = {}): Promise<Ending> {
    const program = this.begin(args, settings)
    const { exitCode } = await program.ended
    return { exitCode, text: program.text }
  }

  /** Starts a rehearsal of the functions that are built. */
  start(...args: string[]): Promise<Ending> {
    return this.run(['--functions', this.functions, ...args])
  }

  /** The state of the rehearsal that has been started last. */
  get state(): State | undefined {
    return readState(this.folder)
  }

  /** All processes of the rehearsal, those of its functions included: their environment names the folder. */
  async processes(): Promise<number[]> {
    const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
    const environments = await Promise.all(ids.map((id) => readFile(`/proc/${id}/environ`, 'utf8').catch(() => '')))
    return ids.map(Number).filter((_, index) => environments[index]?.includes(this.folder))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run(['--stop'])
    await this.#remove()
  }
}
