import { useLayoutEffect, useRef } from 'react'

interface AnchorOptions {
  keyAt: (index: number) => string | undefined
  rowPx: number
  /** The scroll position at which the first row leaves the window. */
  headPx: number
}

/** Rows are searched within this distance of their previous index. */
const anchorReach = 100

/** Keeps the visible rows in place when rows above change. At the top of the list, new rows push the others down. */
export function useAnchor({ keyAt, rowPx, headPx }: AnchorOptions): void {
  const anchor = useRef<{ index: number; key: string }>(undefined)
  useLayoutEffect(() => {
    const first = Math.ceil((scrollY - headPx) / rowPx)
    const held = anchor.current
    const moved = held === undefined || first <= 0 ? 0 : movedBy(held, keyAt)
    if (moved !== 0) scrollBy({ top: moved * rowPx, behavior: 'instant' })
    const index = first + moved
    const key = index > 0 ? keyAt(index) : undefined
    anchor.current = key === undefined ? undefined : { index, key }
  })
}

function movedBy({ index, key }: { index: number; key: string }, keyAt: AnchorOptions['keyAt']): number {
  if (keyAt(index) === undefined || keyAt(index) === key) return 0
  for (let distance = 1; distance <= anchorReach; distance++) {
    if (keyAt(index + distance) === key) return distance
    if (keyAt(index - distance) === key) return -distance
  }
  return 0
}
