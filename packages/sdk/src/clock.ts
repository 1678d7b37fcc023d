/** The only source of the current time in the SDK. */

/** The current time in milliseconds since the Unix epoch. */
export const now = (): number => Date.now()

/** The current time in ISO 8601, UTC. */
export const isoNow = (): string => new Date(now()).toISOString()
