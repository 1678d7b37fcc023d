/** Does work, unless `most` of that name are under way already. */
export type Bulkhead = <Result>(name: string, most: number, work: () => Promise<Result>) => Promise<Result>

/** Counts the work of this process by name. Nobody waits: what would be too much fails at once. */
export function bulkhead(refusal: () => Error): Bulkhead {
  const underWay = new Map<string, number>()
  return async (name, most, work) => {
    const others = underWay.get(name) ?? 0
    if (others >= most) throw refusal()
    underWay.set(name, others + 1)
    try {
      return await work()
    } finally {
      const left = (underWay.get(name) ?? 1) - 1
      if (left === 0) underWay.delete(name)
      else underWay.set(name, left)
    }
  }
}
