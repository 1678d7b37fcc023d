/** Ends the process with 0 once the work is done that SIGTERM or SIGINT asks for. A second signal ends it at once. */
export function onTermination(work: () => Promise<void>): void {
  const end = (): void => void work().then(() => process.exit(0))
  process.once('SIGTERM', end)
  process.once('SIGINT', end)
}
