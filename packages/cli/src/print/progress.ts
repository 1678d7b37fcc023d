import { cut } from './text.ts'

const barWidth = 24
const redrawMs = 100
const lineEveryMs = 5000

export interface ProgressState {
  total: number
  endedCount: number
  /** Additional text, such as `running 3, failed 1`. */
  note: string
}

/** Shows progress on standard error: a bar in a terminal, otherwise lines. */
export class Progress {
  readonly #isBar = process.stderr.isTTY && process.env['TERM'] !== 'dumb'
  readonly #startedAtMs = performance.now()
  #shownAtMs = this.#isBar ? -Infinity : performance.now()
  #shownText = ''

  /** Shows the progress, at most every 100 ms as a bar or every five seconds as a line. */
  update(state: ProgressState): void {
    const sinceMs = performance.now() - this.#shownAtMs
    if (sinceMs < (this.#isBar ? redrawMs : lineEveryMs)) return
    this.#show(state)
  }

  /** Clears the bar, so that other output can be printed. */
  clear(): void {
    if (this.#isBar && this.#shownText !== '') process.stderr.write('\r\u001b[K')
    this.#shownAtMs = this.#isBar ? -Infinity : this.#shownAtMs
    if (this.#isBar) this.#shownText = ''
  }

  #show({ total, endedCount, note }: ProgressState): void {
    const text = `${endedCount}/${total} ${note}`
    this.#shownAtMs = performance.now()
    if (!this.#isBar) {
      if (text !== this.#shownText) process.stderr.write(`${text}\n`)
      this.#shownText = text
      return
    }
    const filledWidth = Math.floor((barWidth * endedCount) / Math.max(1, total))
    const seconds = Math.floor((performance.now() - this.#startedAtMs) / 1000)
    const line = `[${'#'.repeat(filledWidth)}${'-'.repeat(barWidth - filledWidth)}] ${text} (${seconds} s)`
    this.#shownText = cut(line, (process.stderr.columns || 80) - 1)
    process.stderr.write(`\r\u001b[K${this.#shownText}`)
  }
}
