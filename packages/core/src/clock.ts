/** The one place where time comes in, so that tests set it. */

let offsetMs = 0

/** Milliseconds since the epoch. */
export const now = (): number => Date.now() + offsetMs

/** Whole seconds since the epoch. */
export const nowSeconds = (): number => Math.floor(now() / 1000)

/** Whole seconds by the machine's own clock: what libraries with a clock of their own go by. */
export const systemSeconds = (): number => Math.floor(Date.now() / 1000)

/** ISO 8601 UTC of a point in time. Only the edges speak ISO strings. */
export const iso = (ms: number): string => new Date(ms).toISOString()

/** The field of an answer that says when something was; none where it has not been yet. */
export const optionalTimestamp = (name: string, ms: number | undefined) => (ms === undefined ? {} : { [name]: iso(ms) })

/** Whether what was known at a time is younger than this. What lies ahead is not: the clock was put back. */
export const isWithin = (atMs: number, keepMs: number): boolean => atMs <= now() && now() < atMs + keepMs

/** Moves this process's clock; for tests. */
export const shiftClock = (ms: number): void => {
  offsetMs += ms
}
