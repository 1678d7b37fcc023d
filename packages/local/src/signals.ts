/** Modules may take 38 seconds: a delay of at most 3, then at most 35. */
const stopLimitMs = 40_000
/**
 * A second signal within this time is ignored, because npm repeats a signal that the terminal has sent to the whole
 * process group.
 */
const repeatedSignalMs = 1000

/** The exit code is 0 after `stop`, and 1 if `stop` fails, takes too long or is interrupted by another signal. */
export function stopOnSignals(stop: () => Promise<void>): void {
  let stoppingSinceMs: number | undefined

  const onSignal = (signal: NodeJS.Signals) => {
    if (stoppingSinceMs === undefined) {
      stoppingSinceMs = performance.now()
      process.stdout.write(`${signal}: stopping. Another ${signal} stops it immediately.\n`)
      setTimeout(() => exitWith(`The platform did not stop within ${stopLimitMs / 1000} seconds.`), stopLimitMs).unref()
      stop().then(() => process.exit(0), exitWith)
    } else if (performance.now() - stoppingSinceMs > repeatedSignalMs) {
      exitWith('Stopped immediately.')
    }
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

function exitWith(reason: unknown): never {
  console.error(reason)
  process.exit(1)
}
