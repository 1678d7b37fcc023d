import { defaultRangeExtractor, useWindowVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useEffectEvent, useLayoutEffect, useRef, useState } from 'react'

// Height of the top bar and the column heads.
const headerRem = 5.75
const overscan = 6

/** Height of a row in rem, with one line (`wide`) and with two lines (`narrow`). */
export interface RowHeight {
  wide: number
  narrow: number
}

interface RowsOptions {
  count: number
  height: RowHeight
  /** Width below which rows have two lines. */
  minRem: number
  /** Key of a row; undefined until the row is loaded. */
  keyAt: (index: number) => string | undefined
}

/**
 * Determines the rendered rows of a long list: the visible rows and some around them. All rows have the same height.
 */
export function useWindowRows({ count, height, minRem, keyAt }: RowsOptions) {
  const list = useRef<HTMLDivElement>(null)
  const { topPx, remPx, isNarrow } = useBox(list, minRem)
  const rowPx = Math.round((isNarrow ? height.narrow : height.wide) * remPx)
  const [focusedIndex, setFocusedIndex] = useState<number>()
  // oxlint-disable-next-line react/incompatible-library -- the result is not memoized
  const virtualizer = useWindowVirtualizer({
    count,
    estimateSize: () => rowPx,
    overscan,
    scrollMargin: topPx,
    scrollPaddingStart: headerRem * remPx,
    // The focused row stays mounted outside of the window, because unmounting it would lose the focus.
    rangeExtractor: (range) => withIndex(defaultRangeExtractor(range), focusedIndex, count),
  })
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, rowPx])
  useAnchor({ keyAt, rowPx, headPx: topPx - headerRem * remPx })
  const focusRow = useRowFocus(list, (index) => virtualizer.scrollToIndex(index, { align: 'auto' }))
  useListEvents(list, {
    onFocus: setFocusedIndex,
    onKey: (event) => {
      const nextIndex = nextRow(event, focusedIndex, count)
      if (nextIndex === undefined) return
      event.preventDefault()
      // The focused button would otherwise handle the same key, for example to open its menu.
      event.stopPropagation()
      focusRow(nextIndex)
    },
  })
  return { list, isNarrow, virtualizer, topPx }
}

interface ListEvents {
  /** Called with the index of the focused row, or undefined if no row has the focus. */
  onFocus: (index: number | undefined) => void
  onKey: (event: KeyboardEvent) => void
}

// The list handles the events, because rows are not controls.
function useListEvents(list: { current: HTMLElement | null }, { onFocus, onKey }: ListEvents): void {
  const focusIn = useEffectEvent(({ target }: FocusEvent) => {
    const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null
    onFocus(row === null ? undefined : Number(row.dataset['index']))
  })
  const focusOut = useEffectEvent(() => onFocus(undefined))
  const keyDown = useEffectEvent(onKey)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    list.current?.addEventListener('focusin', (event) => focusIn(event), { signal })
    list.current?.addEventListener('focusout', () => focusOut(), { signal })
    list.current?.addEventListener('keydown', (event) => keyDown(event), { signal })
    return () => controller.abort()
  }, [list])
}

const withIndex = (indexes: number[], index: number | undefined, count: number): number[] =>
  index === undefined || index >= count || indexes.includes(index)
    ? indexes
    : [...indexes, index].toSorted((a, b) => a - b)

interface Box {
  topPx: number
  remPx: number
  isNarrow: boolean
}

// Returns the position of the list in the document, and whether the list is narrow.
function useBox(list: { current: HTMLElement | null }, minRem: number): Box {
  const [box, setBox] = useState<Box>({ topPx: 0, remPx: 16, isNarrow: false })
  useLayoutEffect(() => {
    const measure = () => {
      if (list.current === null) return
      const { top, width } = list.current.getBoundingClientRect()
      const remPx = Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
      const nextBox = { topPx: Math.round(top + scrollY), remPx, isNarrow: width < minRem * remPx }
      setBox((lastBox) => (JSON.stringify(lastBox) === JSON.stringify(nextBox) ? lastBox : nextBox))
    }
    measure()
    const observer = new ResizeObserver(measure)
    // Content above the list moves it by changing the height of the page.
    observer.observe(document.body)
    if (list.current !== null) observer.observe(list.current)
    return () => observer.disconnect()
  }, [list, minRem])
  return box
}

// The row may not be rendered or loaded yet, so the focus moves once the row is rendered and again once it is loaded.
function useRowFocus(list: { current: HTMLElement | null }, show: (index: number) => void) {
  const target = useRef<number>(undefined)
  const move = () => {
    const row = list.current?.querySelector<HTMLElement>(`[data-index="${target.current}"]`)
    if (!row) return
    const focusTarget = row.querySelector<HTMLElement>('a') ?? row.querySelector<HTMLElement>('button, input')
    ;(focusTarget ?? row).focus({ preventScroll: true })
    if (row.dataset['blank'] === undefined) target.current = undefined
  }
  useEffect(() => {
    if (target.current === undefined) return
    const { activeElement } = document
    // If the user has moved the focus elsewhere, it must stay there.
    if (activeElement === document.body || list.current?.contains(activeElement)) move()
    else target.current = undefined
  })
  return (index: number) => {
    target.current = index
    show(index)
    move()
  }
}

function nextRow({ key, altKey, ctrlKey, metaKey }: KeyboardEvent, from: number | undefined, count: number) {
  if (from === undefined || altKey || ctrlKey || metaKey) return undefined
  const pageRows = 10
  const targets: Record<string, number> = {
    ArrowDown: from + 1,
    ArrowUp: from - 1,
    PageDown: from + pageRows,
    PageUp: from - pageRows,
    Home: 0,
    End: count - 1,
  }
  const target = targets[key]
  return target === undefined ? undefined : Math.min(count - 1, Math.max(0, target))
}

interface AnchorOptions {
  keyAt: (index: number) => string | undefined
  rowPx: number
  /** Scroll position in pixels at which the first row leaves the window. */
  headPx: number
}

// A moved row is searched for within this distance of its previous index.
const maxAnchorDistance = 100

// Keeps visible rows in place when rows above them are added or removed. At the top of the list, new rows move the
// others down.
function useAnchor({ keyAt, rowPx, headPx }: AnchorOptions): void {
  const anchor = useRef<{ index: number; key: string }>(undefined)
  useLayoutEffect(() => {
    const firstIndex = Math.ceil((scrollY - headPx) / rowPx)
    const previousAnchor = anchor.current
    const movedRows = previousAnchor === undefined || firstIndex <= 0 ? 0 : movedBy(previousAnchor, keyAt)
    if (movedRows !== 0) scrollBy({ top: movedRows * rowPx, behavior: 'instant' })
    const index = firstIndex + movedRows
    const key = index > 0 ? keyAt(index) : undefined
    anchor.current = key === undefined ? undefined : { index, key }
  })
}

function movedBy({ index, key }: { index: number; key: string }, keyAt: AnchorOptions['keyAt']): number {
  if (keyAt(index) === undefined || keyAt(index) === key) return 0
  for (let distance = 1; distance <= maxAnchorDistance; distance++) {
    if (keyAt(index + distance) === key) return distance
    if (keyAt(index - distance) === key) return -distance
  }
  return 0
}
