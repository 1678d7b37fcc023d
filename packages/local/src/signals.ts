const limitMs = 28_000
/** npm repeats the signal that a terminal sends to the process group. */
const echoMs = 1000

/** Stops the process on SIGTERM and SIGINT: exit code 0 after `stop`, 1 if it fails or takes too long. */
export function stopOnSignals(stop: () => Promise<void>): void {
  let stoppingSinceMs: number | undefined

  const onSignal = (signal: NodeJS.Signals) => {
    if (stoppingSinceMs === undefined) {
      stoppingSinceMs = performance.now()
      process.stdout.write(`${signal}: stopping. Another ${signal} stops at once.\n`)
      setTimeout(() => exitWith(`The platform did not stop within ${limitMs / 1000} seconds.`), limitMs).unref()
      stop().then(() => process.exit(0), exitWith)
    } else if (performance.now() - stoppingSinceMs > echoMs) {
      exitWith('Stopped at once.')
    }
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

function exitWith(reason: unknown): never {
  console.error(reason)
  process.exit(1)
}
