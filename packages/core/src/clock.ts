let offsetMs = 0

export const now = (): number => Date.now() + offsetMs

export const nowSeconds = (): number => Math.floor(now() / 1000)

/** Ignores the test offset, for libraries that read the system clock themselves. */
export const systemSeconds = (): number => Math.floor(Date.now() / 1000)

let elapsedOffsetMs = 0

/** For durations within a process. Never decreases, even if the system clock is set back. */
export const elapsedMs = (): number => performance.now() + elapsedOffsetMs

/** The API and the log use ISO 8601 strings; the code uses milliseconds. */
export const iso = (ms: number): string => new Date(ms).toISOString()

export const optionalTimestamp = (name: string, ms: number | undefined) => (ms === undefined ? {} : { [name]: iso(ms) })

/** Also returns false if `atMs` is in the future, which occurs after the clock was set back. */
export const isWithin = (atMs: number, durationMs: number): boolean => atMs <= now() && now() < atMs + durationMs

/** A time by both clocks, because the system clock may be set back, and the other one may pause while Lambda is frozen. */
export interface Times {
  atMs: number
  atElapsedMs: number
}

export const currentTimes = (): Times => ({ atMs: now(), atElapsedMs: elapsedMs() })

/** Whether by both clocks less than `durationMs` has passed. */
export const isRecent = ({ atMs, atElapsedMs }: Times, durationMs: number): boolean =>
  isWithin(atMs, durationMs) && elapsedMs() < atElapsedMs + durationMs

/**
 * Whether the stored end of a lease or pause of at most `maxMs` is in the future. An end more than `2 * maxMs` in the
 * future counts as past, because it was stored before the clock was set back.
 */
export const isAhead = (untilMs: number, maxMs: number): boolean => now() < untilMs && untilMs <= now() + 2 * maxMs

export const shiftClock = (ms: number): void => {
  offsetMs += ms
  elapsedOffsetMs += Math.max(0, ms)
}
