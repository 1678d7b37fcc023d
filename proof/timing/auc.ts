/** How well a time tells two kinds apart: 0.5 not at all, 0 or 1 without fail. The share of pairs in which the first is longer. */
export function areaUnderCurve(first: readonly number[], second: readonly number[]): number {
  const sorted = second.toSorted((a, b) => a - b)
  const longer = first.reduce((sum, value) => sum + (below(sorted, value, false) + below(sorted, value, true)) / 2, 0)
  return longer / (first.length * second.length)
}

/** How many of some sorted values are less than one, or as much. */
function below(sorted: readonly number[], value: number, isEqualCounted: boolean): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const other = sorted[middle] ?? 0
    if (other < value || (isEqualCounted && other === value)) low = middle + 1
    else high = middle
  }
  return low
}
