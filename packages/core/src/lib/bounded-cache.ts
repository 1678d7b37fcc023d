/** Evicts the oldest items beyond the limit. */
export class BoundedCache<Value> {
  private readonly entries = new Map<string, Value>()
  private readonly limit: number

  constructor(limit: number) {
    this.limit = limit
  }

  get(key: string): Value | undefined {
    return this.entries.get(key)
  }

  set(key: string, value: Value): void {
    this.entries.set(key, value)
    if (this.entries.size <= this.limit) return
    for (const oldest of this.entries.keys()) {
      this.entries.delete(oldest)
      return
    }
  }

  delete(key: string): void {
    this.entries.delete(key)
  }
}
