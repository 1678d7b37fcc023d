/** Holds at most `maxEntries` entries. Evicts the one that was set first. */
export class BoundedCache<Value> {
  private readonly entries = new Map<string, Value>()
  private readonly maxEntries: number

  constructor(maxEntries: number) {
    this.maxEntries = maxEntries
  }

  get(key: string): Value | undefined {
    return this.entries.get(key)
  }

  set(key: string, value: Value): void {
    this.entries.delete(key)
    this.entries.set(key, value)
    if (this.entries.size <= this.maxEntries) return
    for (const oldestKey of this.entries.keys()) {
      this.entries.delete(oldestKey)
      return
    }
  }

  delete(key: string): void {
    this.entries.delete(key)
  }
}
