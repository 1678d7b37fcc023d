import { isLong } from './long.ts'

/** Shortens timers of exactly `limitMs` to 1.5 seconds. With `PLAT_TEST_LONG=1`, they keep their real duration. */
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
