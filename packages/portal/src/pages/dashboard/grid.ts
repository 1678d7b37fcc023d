/**
 * The layout has 12 columns, any number of rows, and no gap above a widget. The drag library compacts a layout in the
 * same way as `compact`, so entering edit mode moves no widget.
 */

export const columnCount = 12
/** Height of a row and gap between widgets, in pixels. */
export const rowPixels = 56
export const gapPixels = 16
const maxRows = 20

export interface GridPosition {
  widgetId: string
  x: number
  y: number
  w: number
  h: number
  /** The widget shows only clusters that match this label selector. */
  selector?: string
}

export interface MinSize {
  w: number
  h: number
}

const clamp = (value: number, min: number, max: number): number => Math.min(max, Math.max(min, value))

/** Makes a stored position valid. Another release or another client may have stored it. */
export function fitToGrid(position: GridPosition, minSize: MinSize): GridPosition {
  const w = clamp(position.w, minSize.w, columnCount)
  return { ...position, w, h: clamp(position.h, minSize.h, maxRows), x: clamp(position.x, 0, columnCount - w) }
}

const overlap = (a: GridPosition, b: GridPosition): boolean =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h

// Sorts from top to bottom, then from left to right. Of two widgets in the same row, `first` comes first.
const inReadingOrder = (positions: readonly GridPosition[], first?: string): GridPosition[] =>
  positions.toSorted((a, b) => a.y - b.y || Number(b.widgetId === first) - Number(a.widgetId === first) || a.x - b.x)

/** Moves every widget up as far as possible, in reading order. Overlapping widgets are moved down. */
export function compact(positions: readonly GridPosition[], first?: string): GridPosition[] {
  const placements: GridPosition[] = []
  for (const position of inReadingOrder(positions, first)) {
    const isFree = (y: number) => y >= 0 && !placements.some((other) => overlap({ ...position, y }, other))
    const direction = isFree(position.y) ? -1 : 1
    let { y } = position
    while (direction < 0 ? isFree(y + direction) : !isFree(y)) y += direction
    placements.push({ ...position, y })
  }
  return inReadingOrder(placements)
}

const sharesColumn = (a: GridPosition, b: GridPosition): boolean => a.x < b.x + b.w && b.x < a.x + a.w

/** A move or resize by keyboard. */
export type Step = 'left' | 'right' | 'up' | 'down' | 'narrower' | 'wider' | 'shorter' | 'taller'

/** Returns the layout after a step. If the step is not possible, the layout is unchanged. */
export function moveByKey(
  positions: readonly GridPosition[],
  widgetId: string,
  step: Step,
  minSize: MinSize,
): GridPosition[] {
  const position = positions.find((each) => each.widgetId === widgetId)
  if (position === undefined) return [...positions]
  const others = positions.filter((each) => each !== position)
  return compact([...others, fitToGrid(afterStep(position, others, step), minSize)], widgetId)
}

function afterStep(position: GridPosition, others: readonly GridPosition[], step: Step): GridPosition {
  const { x, y, w, h } = position
  const inSameColumns = others.filter((other) => sharesColumn(other, position))
  // `up` and `down` swap the widget with its neighbour in the same columns.
  const positionAbove = inSameColumns.filter((other) => other.y < y).toSorted((a, b) => b.y + b.h - (a.y + a.h))[0]
  const positionBelow = inSameColumns.filter((other) => other.y > y).toSorted((a, b) => a.y - b.y)[0]
  const changes: Record<Step, Partial<GridPosition>> = {
    left: { x: x - 1 },
    right: { x: x + 1 },
    up: { y: positionAbove?.y ?? y },
    down: { y: positionBelow === undefined ? y : positionBelow.y + positionBelow.h },
    narrower: { w: w - 1 },
    wider: { w: w + 1 },
    shorter: { h: h - 1 },
    taller: { h: h + 1 },
  }
  return { ...position, ...changes[step] }
}

/** Returns the layout with an additional widget below all others. */
export const withWidget = (positions: readonly GridPosition[], widgetId: string, size: MinSize): GridPosition[] =>
  compact([...positions, { widgetId, x: 0, y: Math.max(0, ...positions.map(({ y, h }) => y + h)), ...size }])

export const isSameLayout = (a: readonly GridPosition[], b: readonly GridPosition[]): boolean =>
  a.length === b.length &&
  a.every(({ widgetId, x, y, w, h, selector }) =>
    b.some(
      (o) => o.widgetId === widgetId && o.x === x && o.y === y && o.w === w && o.h === h && o.selector === selector,
    ),
  )
