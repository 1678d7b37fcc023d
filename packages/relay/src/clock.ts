const toleranceMs = 2000

/** The time of this machine, in milliseconds since the Unix epoch. */
export function now(): number {
  return Date.now()
}

/** Estimates the server's time from its responses, so that a machine with a wrong clock can sign valid requests. */
export class ServerClock {
  // Relative to monotonic time, so that a change of this machine's clock has no effect.
  #startMs = now() - performance.now()

  /** The server's time, in milliseconds since the Unix epoch. */
  now(): number {
    return this.#startMs + performance.now()
  }

  /** Adjusts to a timestamp of the server. Small differences are network delays and are ignored. */
  observe(timestamp: unknown): void {
    const serverMs = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
    if (Math.abs(serverMs - this.now()) > toleranceMs) this.#startMs = serverMs - performance.now()
  }
}
