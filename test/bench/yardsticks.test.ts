import { expect, test } from 'vitest'
import { atMost, hope } from '../../bench/support/section.ts'
import { goalRows } from '../../bench/support/yardsticks.ts'

const rowOf = (number: string, goals: Parameters<typeof goalRows>[0]) => goalRows(goals).find(([own]) => own === number)

test('every goal has a row, whether anything was measured of it or not', () => {
  const numbers = goalRows([]).map(([number]) => number)
  expect(numbers).toEqual([...Array.from({ length: 16 }, (_, index) => `${index + 1}`), 'G22', 'G23'])
  expect(new Set(goalRows([]).map(([, , , verdict]) => verdict))).toEqual(new Set(['not measured']))
})

test('a goal that is met says how far from its limit it is, and no more', () => {
  expect(rowOf('2', [atMost('POST /jobs: CPU, × floor', 1.0512, 1.15)])?.slice(2)).toEqual([
    'POST /jobs: CPU, × floor 1.05 of 1.15',
    'met',
    '',
  ])
})

test('of several it shows the one that is farthest beyond its limit, and why', () => {
  const goals = [
    atMost('GET /clusters/{id}: CPU, × floor', 1.09, 1.1),
    atMost('GET /clusters/{id}, a fresh token each: CPU, × floor', 1.5, 1.35),
  ]
  const [, , figure, verdict, distance] = rowOf('1', goals) ?? []
  expect(figure).toBe('1 of 2; GET /clusters/{id}, a fresh token each: CPU, × floor 1.5 of 1.35')
  expect(verdict).toBe('in part')
  expect(distance).not.toBe('')
})

test('what must not happen at all counts as farthest when it does', () => {
  const goals = [atMost('expired tokens accepted', 1, 0), atMost('signature checks of 10,000', 500, 100)]
  expect(rowOf('4', goals)?.slice(2, 4)).toEqual(['0 of 2; expired tokens accepted 1 of 0', 'missed'])
})

test('what is only hoped for is missed all the same', () => {
  expect(rowOf('16', [hope(atMost('dollars: a million reads of a cluster', 2.2, 1.6))])?.[3]).toBe('missed')
})
