/** How long functions may take: one place for whoever runs them and whoever hands them messages. */

const usualMs = 30_000

/** What waits for modules: each hook has 30 seconds, an installation has several, and a look after all of them as well. */
const otherMs: Readonly<Record<string, number>> = {
  'queue/updates': 300_000,
  'schedule/heartbeat': 300_000,
  // A registry may take its time, and there may be several.
  'schedule/catalog': 120_000,
}

/** The most that a function may take. */
export const timeoutMsOf = (functionName: string): number => otherMs[functionName] ?? usualMs

/** Whether a function may take longer than one that somebody waits for. */
export const mayTakeMinutes = (functionName: string): boolean => timeoutMsOf(functionName) > usualMs

/** How long a message is nobody else's: six times what its function may take, as Lambda asks. */
export const visibilityTimeoutSeconds = (queueName: string): number => (timeoutMsOf(`queue/${queueName}`) * 6) / 1000
