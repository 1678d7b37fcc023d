/**
 * Shares of the account's free concurrency that only these functions may use, and to which they are limited. With fewer
 * than 500, nothing is reserved: Lambda requires 100 unreserved, and small reservations would throttle.
 */
const shares: Record<string, number> = { relay: 0.3, auth: 0.1, health: 0.01 }
const minFreeConcurrency = 500

export const reservedFunctions: readonly string[] = Object.keys(shares)

export function reservedConcurrencyOf(name: string, freeConcurrency: number): number | undefined {
  const share = shares[name]
  return share === undefined || freeConcurrency < minFreeConcurrency ? undefined : Math.floor(freeConcurrency * share)
}
