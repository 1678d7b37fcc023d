/** Bytes that one request or its response occupies. */
export interface Charge {
  /**
   * Replaces the number of charged bytes. If the budget is exceeded, the oldest charges with an `evict` function are evicted,
   * possibly including this charge.
   */
  set: (bytes: number, evict?: () => void) => void
  release: () => void
}

interface ByteBudget {
  open: () => Charge
}

/** Limits the memory of all requests together. Evicts slow senders and readers first: their charges are the oldest. */
export function createByteBudget(limitBytes: number): ByteBudget {
  const evictions = new Map<Charge, () => void>()
  let totalBytes = 0

  const open = (): Charge => {
    let ownBytes = 0
    const charge: Charge = {
      set: (bytes, evict) => {
        totalBytes += bytes - ownBytes
        ownBytes = bytes
        if (evict === undefined || bytes === 0) evictions.delete(charge)
        else evictions.set(charge, evict)
        if (bytes > 0) evictOldest()
      },
      release: () => charge.set(0),
    }
    return charge
  }
  const evictOldest = () => {
    for (const [charge, evict] of evictions) {
      if (totalBytes <= limitBytes) return
      charge.release()
      evict()
    }
  }
  return { open }
}
