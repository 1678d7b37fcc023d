import { isLong } from './long.ts'

/**
 * Shortens `setTimeout` and `AbortSignal.timeout` delays of exactly `limitMs` to 1.5 seconds, except with
 * `PLAT_TEST_LONG=1`.
 */
export function fastTimers(limitMs: number): Disposable & { ms: number } {
  const ms = isLong ? limitMs : 1500
  const { setTimeout: originalTimeout } = globalThis
  const originalSignal = AbortSignal.timeout.bind(AbortSignal)
  const shorten = (delayMs = 0) => (delayMs === limitMs ? ms : delayMs)
  const shortenedTimeout = (work: (...more: unknown[]) => void, delayMs?: number, ...more: unknown[]) =>
    originalTimeout(work, shorten(delayMs), ...more)
  globalThis.setTimeout = Object.assign(shortenedTimeout, originalTimeout)
  AbortSignal.timeout = (delayMs) => originalSignal(shorten(delayMs))
  return {
    ms,
    [Symbol.dispose]: () => {
      globalThis.setTimeout = originalTimeout
      AbortSignal.timeout = originalSignal
    },
  }
}
