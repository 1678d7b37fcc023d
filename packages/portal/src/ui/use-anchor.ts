import { useLayoutEffect, useRef } from 'react'

interface AnchorOptions {
  keyAt: (index: number) => string | undefined
  rowPx: number
  /** How far the page is scrolled when the first row begins to leave the window. */
  headPx: number
}

/** A row is looked for so far from where it was. */
const anchorReach = 100

/** When rows come or go above what is read, what is read stays where it is. At the head of the list new rows push. */
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
