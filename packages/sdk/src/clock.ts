/** Returns the time in milliseconds since the Unix epoch. Tests can replace this function. */
export const now = (): number => Date.now()

/** Returns the current time in ISO 8601, UTC. */
export const isoNow = (): string => new Date(now()).toISOString()
