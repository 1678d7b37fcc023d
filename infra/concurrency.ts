/**
 * Shares of the free concurrency of the account that are reserved for functions, which may use no more. Nothing is
 * reserved if fewer than 500 executions are free: Lambda requires 100 unreserved ones, and functions with small
 * reservations would be throttled.
 */
const shares: Record<string, number> = { relay: 0.3, auth: 0.1, health: 0.01 }
const minFreeConcurrency = 500

export const functionsWithReservation: readonly string[] = Object.keys(shares)

export function reservedConcurrencyOf(name: string, freeConcurrency: number): number | undefined {
  const share = shares[name]
  return share === undefined || freeConcurrency < minFreeConcurrency ? undefined : Math.floor(freeConcurrency * share)
}
