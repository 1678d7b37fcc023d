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

/** The places of the dashboard, without a browser: whatever was stored, and whatever is done to it. */

const { verticalCompactor } = createRequire(new URL('../../packages/portal/package.json', import.meta.url))(
  'react-grid-layout/core',
)
const least = { w: 2, h: 2 }

/** Numbers that look random, and are the same in each run. */
function dice(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

function anyPlaces(seed: number): GridPosition[] {
  const roll = dice(seed)
  return Array.from({ length: 2 + roll(10) }, (_, index) =>
    fitToGrid({ widgetId: `w${index}`, x: roll(14), y: roll(20), w: roll(14), h: roll(7) }, least),
  )
}
const seeds = Array.from({ length: 300 }, (_, index) => index + 1)

function expectStanding(places: readonly GridPosition[]): void {
  for (const [index, a] of places.entries()) {
    expect(a.x).toBeGreaterThanOrEqual(0)
    expect(a.x + a.w).toBeLessThanOrEqual(columns)
    for (const b of places.slice(index + 1)) {
      const isApart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y
      expect(isApart, `${JSON.stringify(a)} and ${JSON.stringify(b)}`).toBe(true)
    }
  }
}

test('no two widgets stand in each other’s place, and none could fall further', () => {
  for (const seed of seeds) {
    const places = compact(anyPlaces(seed))
    expectStanding(places)
    expect(compact(places)).toEqual(places)
  }
})

test('what has settled is left as it is by the grid that is dragged in: to edit moves nothing', () => {
  for (const seed of seeds) {
    const places = compact(anyPlaces(seed))
    const layout = places.map(({ widgetId: i, ...place }) => ({ i, ...place }))
    const compacted: any[] = verticalCompactor.compact(layout, columns)
    expect(compacted.map(({ i, x, y, w, h }) => ({ widgetId: i, x, y, w, h }))).toEqual(places)
  }
})

const steps: readonly Step[] = ['left', 'right', 'up', 'down', 'narrower', 'wider', 'shorter', 'taller']

test('any number of steps leaves all widgets standing', () => {
  for (const seed of seeds) {
    const roll = dice(seed)
    let places = compact(anyPlaces(seed))
    for (let count = 0; count < 20; count++) {
      const before = places.length
      const step = steps[roll(steps.length)] ?? 'up'
      places = moveByKey(places, `w${roll(before)}`, step, least)
      expect(places).toHaveLength(before)
      expectStanding(places)
    }
  }
})

const order = (places: readonly GridPosition[]) => places.map(({ widgetId }) => widgetId).join('')

test('up and down change places with the neighbour, and come back', () => {
  const column = compact(['a', 'b', 'c'].map((widgetId, y) => ({ widgetId, x: 0, y: y * 3, w: 6, h: 3 })))
  const down = moveByKey(column, 'a', 'down', least)
  expect(order(down)).toBe('bac')
  expect(order(moveByKey(down, 'a', 'down', least))).toBe('bca')
  expect(order(moveByKey(moveByKey(down, 'a', 'down', least), 'a', 'up', least))).toBe('bac')
  expect(moveByKey(column, 'a', 'up', least)).toEqual(column)
  expect(moveByKey(column, 'c', 'down', least)).toEqual(column)
  expect(moveByKey(column, 'a', 'left', least)).toEqual(column)
})

test('a new widget comes below all others, or into the first gap above', () => {
  const places = compact([
    { widgetId: 'a', x: 0, y: 0, w: 12, h: 3 },
    { widgetId: 'b', x: 6, y: 3, w: 6, h: 3 },
  ])
  expect(withWidget(places, 'c', { w: 6, h: 2 }).at(-2)).toEqual({ widgetId: 'c', x: 0, y: 3, w: 6, h: 2 })
  expect(withWidget(places, 'c', { w: 8, h: 2 }).at(-1)).toEqual({ widgetId: 'c', x: 0, y: 6, w: 8, h: 2 })
})
