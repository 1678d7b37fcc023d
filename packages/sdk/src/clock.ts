/** The one place where time comes in. */

/** Milliseconds since 1970. */
export const now = (): number => Date.now()

/** The time in ISO 8601, UTC. */
export const isoNow = (): string => new Date(now()).toISOString()
