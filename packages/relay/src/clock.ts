const toleranceMs = 2000

/** Returns the time of this machine, in milliseconds since the Unix epoch. */
export function now(): number {
  return Date.now()
}

/** Estimates the server's time from its responses, so that a machine with a wrong clock can sign valid requests. */
export class ServerClock {
  // The server's time at the start of monotonic time, so that changes of this machine's clock have no effect.
  #startMs = now() - performance.now()

  /** Returns the server's time, in milliseconds since the Unix epoch. */
  now(): number {
    return this.#startMs + performance.now()
  }

  /** Adjusts the estimate to a timestamp of the server. Ignores differences of up to 2 s, such as network delays. */
  observe(timestamp: unknown): void {
    const serverMs = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
    if (Math.abs(serverMs - this.now()) > toleranceMs) this.#startMs = serverMs - performance.now()
  }
}
