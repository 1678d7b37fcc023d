import { seekOffset, emptyOffsets, withoutRecord, withRecord } from '@platform/core/db/offset-index'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

/** Reads a page the way the list does: rows older than the bound, newest first, some skipped. */
const page = (times: number[], ranks: ReturnType<typeof emptyOffsets>, offset: number, size: number): number[] => {
  const place = seekOffset(ranks, offset)
  if (place === undefined) return []
  const newest = times.toSorted((a, b) => b - a).filter((time) => time < (place.beforeMs ?? Number.POSITIVE_INFINITY))
  return newest.slice(place.skip, place.skip + size)
}

test('any page of any history of registrations and removals is the page of the sorted list', () => {
  const steps = fc.array(fc.oneof({ weight: 3, arbitrary: fc.constant(-1) }, fc.nat(400)), { maxLength: 400 })
  fc.assert(
    fc.property(steps, fc.nat(420), fc.integer({ min: 1, max: 100 }), (history, offset, size) => {
      let times: number[] = []
      let ranks = emptyOffsets()
      history.forEach((step, index) => {
        const gone = step >= 0 ? times[step % Math.max(1, times.length)] : undefined
        if (gone === undefined) {
          times = [...times, 1_800_000_000_000 + index]
          ranks = withRecord(ranks, 1_800_000_000_000 + index)
        } else {
          times = times.filter((time) => time !== gone)
          ranks = withoutRecord(ranks, gone)
        }
      })
      expect(page(times, ranks, offset, size)).toEqual(times.toSorted((a, b) => b - a).slice(offset, offset + size))
    }),
    { numRuns: 200 },
  )
})

test('100,000 rows take 14 KB and skip fewer than 50 rows', () => {
  let ranks = emptyOffsets()
  for (let row = 0; row < 100_000; row++) ranks = withRecord(ranks, 1_800_000_000_000 + row)
  expect(ranks.length).toBeLessThanOrEqual(14_000)
  expect(seekOffset(ranks, 54_321)?.skip).toBeLessThan(50)
  expect(seekOffset(ranks, 100_000)).toBeUndefined()
})
