import { exitCodes } from '../exit.ts'
import { say } from '../print/write.ts'

/** npm hands on a signal that the terminal has sent already: one Ctrl-C arrives twice. */
const samePressMs = 400

/**
 * Ctrl-C while jobs run: the first one asks the platform to cancel, the second one leaves. Dispose of it when the jobs
 * have ended.
 */
export class Interrupt implements Disposable {
  #lastMs = -Infinity
  #cancel: (() => Promise<void>) | undefined
  isAsked = false

  constructor() {
    process.on('SIGINT', this.#onSignal)
  }

  /** What cancels the jobs, once they are known. Resolves when what was asked for before has been done. */
  async cancelWith(cancel: () => Promise<void>): Promise<void> {
    this.#cancel = cancel
    if (this.isAsked) await this.#ask(cancel)
  }

  [Symbol.dispose](): void {
    process.off('SIGINT', this.#onSignal)
  }

  readonly #onSignal = (): void => {
    const isSamePress = performance.now() - this.#lastMs < samePressMs
    this.#lastMs = performance.now()
    if (isSamePress) return
    if (this.isAsked) process.exit(exitCodes.interrupted)
    this.isAsked = true
    // Below the ^C of the terminal, and whatever stands in its line.
    if (process.stderr.isTTY) process.stderr.write('\n')
    say('Cancelling. Ctrl-C again leaves without waiting for the end.')
    if (this.#cancel) void this.#ask(this.#cancel)
  }

  async #ask(cancel: () => Promise<void>): Promise<void> {
    await cancel().catch((error: unknown) =>
      say(`It could not be cancelled: ${error instanceof Error ? error.message : String(error)}`),
    )
  }
}
