const toleranceMs = 2000

/** The time of this machine, in milliseconds since the Unix epoch. */
export function now(): number {
  return Date.now()
}

/** Estimates the server's time from its responses, so that a machine with a wrong clock can sign valid requests. */
export class ServerClock {
  #offsetMs = 0

  /** The server's time, in milliseconds since the Unix epoch. */
  now(): number {
    return now() + this.#offsetMs
  }

  /** Adjusts to a timestamp of the server. Small differences are network delays and are ignored. */
  observe(timestamp: unknown): void {
    const serverMs = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
    if (Math.abs(serverMs - this.now()) > toleranceMs) this.#offsetMs = serverMs - now()
  }
}
