import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import {
  withWidget,
  columns,
  fitToGrid,
  type GridPosition,
  compact,
  type Step,
  moveByKey,
} from '../../packages/portal/src/pages/dashboard/grid.ts'

const { verticalCompactor } = createRequire(new URL('../../packages/portal/package.json', import.meta.url))(
  'react-grid-layout/core',
)
const minimum = { w: 2, h: 2 }

/** Reproducible pseudo-random numbers below a limit. */
function random(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * limit)
  }
}

function randomLayout(seed: number): GridPosition[] {
  const next = random(seed)
  const layout = Array.from({ length: 2 + next(10) }, (_, index) =>
    fitToGrid({ widgetId: `w${index}`, x: next(14), y: next(20), w: next(14), h: next(7) }, minimum),
  )
  return compact(layout)
}
const seeds = Array.from({ length: 300 }, (_, index) => index + 1)

function expectNoOverlap(layout: readonly GridPosition[]): void {
  for (const [index, a] of layout.entries()) {
    expect(a.x).toBeGreaterThanOrEqual(0)
    expect(a.x + a.w).toBeLessThanOrEqual(columns)
    for (const b of layout.slice(index + 1)) {
      const isApart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y
      expect(isApart, `${JSON.stringify(a)} and ${JSON.stringify(b)}`).toBe(true)
    }
  }
}

test('a compact layout has no overlaps and is stable, also for the drag library', () => {
  for (const seed of seeds) {
    const layout = randomLayout(seed)
    expectNoOverlap(layout)
    expect(compact(layout)).toEqual(layout)
    const items = layout.map(({ widgetId: i, ...place }) => ({ i, ...place }))
    const compacted: any[] = verticalCompactor.compact(items, columns)
    expect(compacted.map(({ i, x, y, w, h }) => ({ widgetId: i, x, y, w, h }))).toEqual(layout)
  }
})

const steps: readonly Step[] = ['left', 'right', 'up', 'down', 'narrower', 'wider', 'shorter', 'taller']

test('key steps neither lose widgets nor cause overlaps', () => {
  for (const seed of seeds) {
    const next = random(seed)
    let layout = randomLayout(seed)
    const { length } = layout
    for (let count = 0; count < 20; count++) {
      layout = moveByKey(layout, `w${next(length)}`, steps[next(steps.length)] ?? 'up', minimum)
      expect(layout).toHaveLength(length)
      expectNoOverlap(layout)
    }
  }
})

const order = (layout: readonly GridPosition[]) => layout.map(({ widgetId }) => widgetId).join('')

test('up and down swap neighbours', () => {
  const column = compact(['a', 'b', 'c'].map((widgetId, y) => ({ widgetId, x: 0, y: y * 3, w: 6, h: 3 })))
  const down = moveByKey(column, 'a', 'down', minimum)
  expect(order(down)).toBe('bac')
  expect(order(moveByKey(down, 'a', 'down', minimum))).toBe('bca')
  expect(order(moveByKey(moveByKey(down, 'a', 'down', minimum), 'a', 'up', minimum))).toBe('bac')
  expect(moveByKey(column, 'a', 'up', minimum)).toEqual(column)
  expect(moveByKey(column, 'c', 'down', minimum)).toEqual(column)
  expect(moveByKey(column, 'a', 'left', minimum)).toEqual(column)
})

test('a new widget fills the first gap or goes to the end', () => {
  const layout = compact([
    { widgetId: 'a', x: 0, y: 0, w: 12, h: 3 },
    { widgetId: 'b', x: 6, y: 3, w: 6, h: 3 },
  ])
  expect(withWidget(layout, 'c', { w: 6, h: 2 }).at(-2)).toEqual({ widgetId: 'c', x: 0, y: 3, w: 6, h: 2 })
  expect(withWidget(layout, 'c', { w: 8, h: 2 }).at(-1)).toEqual({ widgetId: 'c', x: 0, y: 6, w: 8, h: 2 })
})
