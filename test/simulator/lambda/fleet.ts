import { localRegion } from '@platform/local/emulators/http/environment'
import { InvalidEntrypoint } from './code.ts'
import { arnOf, type Revision } from './function.ts'
import { failedOutcome, type Outcome } from './runtime-api.ts'
import { type Sandbox, startSandbox } from './sandbox.ts'

export interface FleetOptions {
  initLimitMs: number
  environmentOf: (functionName: string) => Readonly<Record<string, string>>
  onOutput: (functionName: string, text: string) => void
}

interface Member {
  revision: Revision
  sandbox: Sandbox
}

export class Fleet {
  readonly #options: FleetOptions
  readonly #members = new Set<Member>()
  readonly #retired = new WeakSet<Revision>()
  #isClosed = false

  constructor(options: FleetOptions) {
    this.#options = options
  }

  sandboxesOf(functionName: string): Sandbox[] {
    const members = [...this.#members].filter(({ revision }) => revision.functionName === functionName)
    return members.map(({ sandbox }) => sandbox).filter(({ hasEnded }) => !hasEnded)
  }

  async invoke(revision: Revision, payload: Buffer): Promise<Outcome> {
    try {
      return await this.#run(revision, payload)
    } catch (error) {
      if (error instanceof InvalidEntrypoint) return failedOutcome('Runtime.InvalidEntrypoint', error.message)
      throw error
    }
  }

  /** Ends the sandboxes of a revision that is no longer invoked. Busy sandboxes end after their invocation. */
  async retire(revision: Revision): Promise<void> {
    this.#retired.add(revision)
    await this.#endIdle((member) => member.revision === revision)
  }

  reap = (): Promise<void> => this.#endIdle(() => true)

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#members].map((member) => this.#end(member)))
  }

  async #run(revision: Revision, payload: Buffer): Promise<Outcome> {
    const { functionName, version, settings } = revision
    const idleMember = [...this.#members].find((member) => member.revision === revision && member.sandbox.isIdle)
    const member = idleMember ?? (await this.#initialise(revision))
    const deadlineMs = Date.now() + settings.Timeout * 1000
    const work = { id: crypto.randomUUID(), payload, deadlineMs, functionArn: arnOf(functionName, version) }
    const outcome = await member.sandbox.run(work, settings.Timeout)
    if (!member.sandbox.isIdle || this.#retired.has(revision)) await this.#end(member)
    return outcome
  }

  /** If the init fails or exceeds its limit, Lambda repeats it as part of the invocation. */
  async #initialise(revision: Revision): Promise<Member> {
    const instance = await this.#start(revision)
    if (await instance.sandbox.initialise(this.#options.initLimitMs)) return instance
    await this.#end(instance)
    return this.#start(revision)
  }

  async #start(revision: Revision): Promise<Member> {
    const { functionName, code, settings } = revision
    const sandbox = await startSandbox({
      program: await code.program(settings),
      environment: { ...sandboxEnvironment(revision), ...this.#options.environmentOf(functionName) },
      onOutput: (text) => this.#options.onOutput(functionName, text),
    })
    const member = { revision, sandbox }
    this.#members.add(member)
    if (this.#isClosed) await this.#end(member)
    return member
  }

  async #end(member: Member): Promise<void> {
    this.#members.delete(member)
    await member.sandbox.end()
  }

  async #endIdle(matches: (member: Member) => boolean): Promise<void> {
    const idleMembers = [...this.#members].filter((member) => member.sandbox.isIdle && matches(member))
    await Promise.all(idleMembers.map((member) => this.#end(member)))
  }
}

const sandboxEnvironment = ({ functionName, version, settings }: Revision): Record<string, string> => ({
  LANG: 'en_US.UTF-8',
  TZ: ':UTC',
  AWS_REGION: localRegion,
  AWS_DEFAULT_REGION: localRegion,
  AWS_LAMBDA_FUNCTION_NAME: functionName,
  AWS_LAMBDA_FUNCTION_VERSION: version,
  AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(settings.MemorySize),
  AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
  AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${functionName}`,
  AWS_LAMBDA_LOG_STREAM_NAME: `[${version}]`,
  ...settings.Environment?.Variables,
})
