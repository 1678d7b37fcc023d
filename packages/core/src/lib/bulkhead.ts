/** Runs the work unless `most` of that name are running. */
export type Bulkhead = <Result>(name: string, most: number, work: () => Promise<Result>) => Promise<Result>

/** Limits concurrent work of this process by name. Excess work fails at once instead of waiting. */
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
