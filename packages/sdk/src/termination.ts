/** Runs the work on SIGTERM or SIGINT, then exits with 0. The same signal again ends the process immediately. */
export function onTermination(work: () => Promise<void>): void {
  const end = (): void => void work().then(() => process.exit(0))
  process.once('SIGTERM', end)
  process.once('SIGINT', end)
}
