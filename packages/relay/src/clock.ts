const toleranceMs = 2000

/** The time of this machine, in milliseconds since 1970. */
export function now(): number {
  return Date.now()
}

/** The server's time, estimated from its responses: a machine with a wrong clock still signs valid requests. */
export class ServerClock {
  #offsetMs = 0

  /** Milliseconds since 1970. */
  now(): number {
    return now() + this.#offsetMs
  }

  /** Adjusts to a timestamp of the server. Small differences are network delay and are ignored. */
  observe(timestamp: unknown): void {
    const serverMs = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
    if (Math.abs(serverMs - this.now()) > toleranceMs) this.#offsetMs = serverMs - now()
  }
}
