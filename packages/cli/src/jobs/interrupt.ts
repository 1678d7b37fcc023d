import { exitCodes } from '../exit.ts'
import { say } from '../print/write.ts'

/** npm forwards a signal that the terminal sent too: one Ctrl-C arrives twice. */
const samePressMs = 400

/**
 * Handles Ctrl-C while jobs run: the first requests cancellation, the second exits. Dispose of it when the jobs have
 * ended.
 */
export class Interrupt implements Disposable {
  #lastMs = -Infinity
  #cancel: (() => Promise<void>) | undefined
  isRequested = false

  constructor() {
    process.on('SIGINT', this.#onSignal)
  }

  /** Sets how to cancel the jobs. Resolves after a cancellation that was requested before. */
  async cancelWith(cancel: () => Promise<void>): Promise<void> {
    this.#cancel = cancel
    if (this.isRequested) await this.#ask(cancel)
  }

  [Symbol.dispose](): void {
    process.off('SIGINT', this.#onSignal)
  }

  readonly #onSignal = (): void => {
    const isSamePress = performance.now() - this.#lastMs < samePressMs
    this.#lastMs = performance.now()
    if (isSamePress) return
    if (this.isRequested) process.exit(exitCodes.interrupted)
    this.isRequested = true
    // Starts a line below the terminal's ^C.
    if (process.stderr.isTTY) process.stderr.write('\n')
    say('Cancelling. Press Ctrl-C again to exit without waiting.')
    if (this.#cancel) void this.#ask(this.#cancel)
  }

  async #ask(cancel: () => Promise<void>): Promise<void> {
    await cancel().catch((error: unknown) =>
      say(`Failed to cancel: ${error instanceof Error ? error.message : String(error)}`),
    )
  }
}
