import { AsyncLocalStorage } from 'node:async_hooks'

/** The state of a limit after one call, for the `RateLimit` headers. */
export interface RateLimitState {
  limit: number
  remaining: number
  /** Seconds until the limit is fully restored. */
  resetSeconds: number
  /** Seconds until the next call is allowed; 0 if this call is allowed. */
  retryAfterSeconds: number
}

type Listener = (state: RateLimitState) => void

const storage = new AsyncLocalStorage<Listener>()

/** Reports a limit that a use case has checked. Does nothing outside of `withRateLimitStates`. */
export const reportRateLimit = (state: RateLimitState): void => storage.getStore()?.(state)

/** Calls the listener with each state that `work` reports. The last one applies to the response. */
export const withRateLimitStates = <Result>(listener: Listener, work: () => Result): Result =>
  storage.run(listener, work)
