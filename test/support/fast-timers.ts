import { isLong } from './long.ts'

/** Long enough for whoever does answer, on a busy machine too. */
const hurriedMs = 1500

/**
 * Has every time limit of exactly so many milliseconds that this process sets pass in a moment, until it is disposed of: a
 * test that waits for somebody who never answers need not wait long. `PLAT_TEST_LONG=1` waits it out. `ms` is how long it is.
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
