import { isLong } from './long.ts'

/** Shortened timeout; long enough for a response on a busy machine. */
const hurriedMs = 1500

/**
 * Shortens every timer of exactly `ms` milliseconds, so that tests of timeouts do not wait. `PLAT_TEST_LONG=1` uses the
 * real timeout.
 */
export function fastTimers(limitMs: number): Disposable & { ms: number } {
  const ms = isLong ? limitMs : hurriedMs
  const { setTimeout: usual } = globalThis
  const usualSignal = AbortSignal.timeout.bind(AbortSignal)
  const hurry = (asked = 0) => (asked === limitMs ? ms : asked)
  const hurriedTimeout = (work: (...more: unknown[]) => void, asked?: number, ...more: unknown[]) =>
    usual(work, hurry(asked), ...more)
  globalThis.setTimeout = Object.assign(hurriedTimeout, usual)
  AbortSignal.timeout = (asked) => usualSignal(hurry(asked))
  return {
    ms,
    [Symbol.dispose]: () => {
      globalThis.setTimeout = usual
      AbortSignal.timeout = usualSignal
    },
  }
}
