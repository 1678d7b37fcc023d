const toleranceMs = 2000

/** The time of this machine, in milliseconds since 1970. */
export function now(): number {
  return Date.now()
}

/** The time of the server, kept by what its answers say: a machine with a wrong clock still signs valid requests. */
export class ServerClock {
  #offsetMs = 0

  /** Milliseconds since 1970. */
  now(): number {
    return now() + this.#offsetMs
  }

  /** Takes in a time that the server just told; small differences are travel time and change nothing. */
  observe(timestamp: unknown): void {
    const serverMs = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
    if (Math.abs(serverMs - this.now()) > toleranceMs) this.#offsetMs = serverMs - now()
  }
}
