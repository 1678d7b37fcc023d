/** Runs the work on SIGTERM or SIGINT, then exits with 0. A second signal ends the process immediately. */
export function onTermination(work: () => Promise<void>): void {
  const end = (): void => {
    process.off('SIGTERM', end).off('SIGINT', end)
    void work().then(() => process.exit(0))
  }
  process.once('SIGTERM', end).once('SIGINT', end)
}
