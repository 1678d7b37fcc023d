/** The current time in milliseconds since the Unix epoch. All code of the SDK uses it, so that tests can replace it. */
export const now = (): number => Date.now()

/** The current time in ISO 8601, UTC. */
export const isoNow = (): string => new Date(now()).toISOString()
