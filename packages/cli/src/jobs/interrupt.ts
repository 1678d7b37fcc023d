import { exitCodes } from '../exit.ts'
import { say } from '../print/write.ts'

// Under npm, both the terminal and npm send the signal, so one Ctrl-C arrives twice.
const samePressMs = 400

/**
 * Handles Ctrl-C while jobs run: the first one requests cancellation, the second one exits. Dispose of it when the jobs
 * have ended.
 */
export class Interrupt implements Disposable {
  #lastPressMs = -Infinity
  #cancel: (() => Promise<void>) | undefined
  isRequested = false

  constructor() {
    process.on('SIGINT', this.#onSignal)
  }

  /** Sets the function that cancels the jobs. If cancellation was requested before, calls it and waits for it. */
  async cancelWith(cancel: () => Promise<void>): Promise<void> {
    this.#cancel = cancel
    if (this.isRequested) await this.#tryCancel(cancel)
  }

  [Symbol.dispose](): void {
    process.off('SIGINT', this.#onSignal)
  }

  readonly #onSignal = (): void => {
    const isSamePress = performance.now() - this.#lastPressMs < samePressMs
    this.#lastPressMs = performance.now()
    if (isSamePress) return
    if (this.isRequested) process.exit(exitCodes.interrupted)
    this.isRequested = true
    // The terminal has printed ^C on the current line.
    if (process.stderr.isTTY) process.stderr.write('\n')
    say('Cancelling. Press Ctrl-C again to exit without waiting.')
    if (this.#cancel) void this.#tryCancel(this.#cancel)
  }

  async #tryCancel(cancel: () => Promise<void>): Promise<void> {
    await cancel().catch((error: unknown) =>
      say(`Failed to cancel: ${error instanceof Error ? error.message : String(error)}`),
    )
  }
}
