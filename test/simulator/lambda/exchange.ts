import type { RuntimeListener, Work } from './runtime-api.ts'

export interface Outcome {
  payload: Buffer
  /** Sets the header `X-Amz-Function-Error`. */
  isError: boolean
}

export const maximumPayloadBytes = 6 * 1024 * 1024

export const failedOutcome = (errorType: string, errorMessage: string): Outcome => ({
  isError: true,
  payload: Buffer.from(JSON.stringify({ errorType, errorMessage })),
})

interface Task {
  work: Work
  isGiven: boolean
  outcome?: Outcome
  settle: (outcome: Outcome) => void
}

/** The Runtime API of one program: one task at a time. */
export class Exchange implements RuntimeListener {
  readonly #freeze: () => void
  readonly #thaw: () => void
  readonly #ready = Promise.withResolvers<boolean>()
  #give: ((work: Work) => void) | undefined
  #task: Task | undefined
  #initError: Outcome | undefined
  #last: ((id: string) => Outcome) | undefined

  constructor(freeze: () => void, thaw: () => void) {
    this.#freeze = freeze
    this.#thaw = thaw
  }

  get isIdle(): boolean {
    return this.#give !== undefined && this.#task === undefined
  }

  /** Resolves to false when the init failed. */
  get whenReady(): Promise<boolean> {
    return this.#ready.promise
  }

  /** Runs a task. Its outcome counts once the program requests the next one, or has ended. */
  run(work: Work): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.#task = { work, isGiven: false, settle: resolve }
    const known = this.#initError ?? this.#last?.(work.id)
    if (known === undefined) this.#giveTask()
    else resolve(known)
    return promise
  }

  end(outcome: (id: string) => Outcome): void {
    this.#last = outcome
    this.#give = undefined
    this.#ready.resolve(false)
    const task = this.#task
    task?.settle(task.outcome ?? this.#initError ?? outcome(task.work.id))
  }

  next(give: (work: Work) => void): void {
    this.#give = give
    this.#ready.resolve(true)
    const task = this.#task
    if (task?.outcome !== undefined) this.#task = undefined
    if (this.#task === undefined) this.#freeze()
    else this.#giveTask()
    if (task?.outcome !== undefined) task.settle(task.outcome)
  }

  responded(id: string, payload: Buffer): number {
    if (payload.length <= maximumPayloadBytes) return this.#conclude(id, { payload, isError: false }, 202)
    const message = `The response is larger than ${maximumPayloadBytes} bytes.`
    return this.#conclude(id, failedOutcome('Function.ResponseSizeTooLarge', message), 413)
  }

  failed(id: string, payload: Buffer): number {
    return this.#conclude(id, { payload, isError: true }, 202)
  }

  initFailed(payload: Buffer): number {
    if (this.#give !== undefined) return 403
    this.#initError = { payload, isError: true }
    this.#ready.resolve(false)
    this.#task?.settle(this.#initError)
    return 202
  }

  #conclude(id: string, outcome: Outcome, status: number): number {
    const task = this.#task
    if (task?.work.id !== id || task.outcome !== undefined) return 400
    task.outcome = outcome
    return status
  }

  #giveTask(): void {
    const task = this.#task
    if (this.#give === undefined || task === undefined || task.isGiven) return
    task.isGiven = true
    this.#thaw()
    this.#give(task.work)
  }
}
