/**
 * Where widgets stand on the dashboard: cells of a grid of 12 columns, as many rows as it takes, nothing above a widget that
 * it could fall into. The rules are those of the grid that is dragged in, so that both show the same.
 */

export const columns = 12
/** The height of a row, and the room between two cells, in pixels. */
export const rowPixels = 56
export const gapPixels = 16
const mostRows = 20

/** A widget in its place. */
export interface GridPosition {
  widgetId: string
  x: number
  y: number
  w: number
  h: number
}

/** The least room that a widget needs. */
export interface MinSize {
  w: number
  h: number
}

const clamp = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value))

/** A place that is one: whatever was stored may be of another release, or of somebody's script. */
export function fitToGrid(place: GridPosition, least: MinSize): GridPosition {
  const w = clamp(place.w, least.w, columns)
  return { ...place, w, h: clamp(place.h, least.h, mostRows), x: clamp(place.x, 0, columns - w) }
}

const meet = (a: GridPosition, b: GridPosition): boolean =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h

/** Top to bottom, then left to right: how one reads. Of two at the same place `first` comes first. */
const inOrder = (places: readonly GridPosition[], first?: string): GridPosition[] =>
  places.toSorted((a, b) => a.y - b.y || Number(b.widgetId === first) - Number(a.widgetId === first) || a.x - b.x)

/** Lets every widget fall up as far as it goes, in reading order; what stands in another's place gives way downwards. */
export function compact(places: readonly GridPosition[], first?: string): GridPosition[] {
  const standing: GridPosition[] = []
  for (const place of inOrder(places, first)) {
    const isFree = (y: number) => y >= 0 && !standing.some((other) => meet({ ...place, y }, other))
    const step = isFree(place.y) ? -1 : 1
    let { y } = place
    while (step < 0 ? isFree(y + step) : !isFree(y)) y += step
    standing.push({ ...place, y })
  }
  return inOrder(standing)
}

const inColumn = (a: GridPosition, b: GridPosition): boolean => a.x < b.x + b.w && b.x < a.x + a.w

/** One step that a widget can take without being dragged. */
export type Step = 'left' | 'right' | 'up' | 'down' | 'narrower' | 'wider' | 'shorter' | 'taller'

/** The places after one widget has taken a step; the same ones where it cannot. */
export function moveByKey(
  places: readonly GridPosition[],
  widgetId: string,
  step: Step,
  least: MinSize,
): GridPosition[] {
  const place = places.find((each) => each.widgetId === widgetId)
  if (place === undefined) return [...places]
  const others = places.filter((each) => each !== place)
  return compact([...others, fitToGrid(afterStep(place, others, step), least)], widgetId)
}

function afterStep(place: GridPosition, others: readonly GridPosition[], step: Step): GridPosition {
  const { x, y, w, h } = place
  const beside = others.filter((other) => inColumn(other, place))
  // In the place of what is above it, which then gives way; or below what is below it, which then rises.
  const above = beside.filter((other) => other.y < y).toSorted((a, b) => b.y + b.h - (a.y + a.h))[0]
  const below = beside.filter((other) => other.y > y).toSorted((a, b) => a.y - b.y)[0]
  const changes: Record<Step, Partial<GridPosition>> = {
    left: { x: x - 1 },
    right: { x: x + 1 },
    up: { y: above?.y ?? y },
    down: { y: below === undefined ? y : below.y + below.h },
    narrower: { w: w - 1 },
    wider: { w: w + 1 },
    shorter: { h: h - 1 },
    taller: { h: h + 1 },
  }
  return { ...place, ...changes[step] }
}

/** The places with one more widget, below all others. */
export const withWidget = (places: readonly GridPosition[], widgetId: string, size: MinSize): GridPosition[] =>
  compact([...places, { widgetId, x: 0, y: Math.max(0, ...places.map(({ y, h }) => y + h)), ...size }])

/** Whether two layouts show the same. */
export const isSame = (a: readonly GridPosition[], b: readonly GridPosition[]): boolean =>
  a.length === b.length &&
  a.every(({ widgetId, x, y, w, h }) =>
    b.some((o) => o.widgetId === widgetId && o.x === x && o.y === y && o.w === w && o.h === h),
  )
