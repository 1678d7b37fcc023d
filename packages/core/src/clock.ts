/** The only source of time, so that tests can set it. */

let offsetMs = 0

/** Milliseconds since the epoch. */
export const now = (): number => Date.now() + offsetMs

/** Whole seconds since the epoch. */
export const nowSeconds = (): number => Math.floor(now() / 1000)

/** Seconds of the machine's clock, for libraries that use their own clock. */
export const systemSeconds = (): number => Math.floor(Date.now() / 1000)

/** ISO 8601 in UTC. Only the API uses ISO strings; the code uses milliseconds. */
export const iso = (ms: number): string => new Date(ms).toISOString()

/** An optional timestamp field of a response. */
export const optionalTimestamp = (name: string, ms: number | undefined) => (ms === undefined ? {} : { [name]: iso(ms) })

/** Whether a time is less than `durationMs` ago. False for future times, which occur after the clock was set back. */
export const isWithin = (atMs: number, durationMs: number): boolean => atMs <= now() && now() < atMs + durationMs

/** Moves this process's clock, for tests. */
export const shiftClock = (ms: number): void => {
  offsetMs += ms
}
