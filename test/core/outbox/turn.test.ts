import { shiftClock } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { withLease } from '@platform/core/outbox/run-projections'
import { expect, test } from 'vitest'
import { rounds } from '../../support/long.ts'

/** Something to do that others may add to, and how many workers were at it at once. */
function workplace() {
  let [waiting, working, most] = [0, 0, 0]
  return {
    add: () => void waiting++,
    work: async () => {
      most = Math.max(most, ++working)
      // What comes while the worker is at it, it has not seen yet.
      const seen = waiting
      await new Promise(setImmediate)
      waiting -= seen
      working--
      return true
    },
    waiting: () => waiting,
    most: () => most,
  }
}

test('of many workers one works at a time, and nothing that came meanwhile is left', async () => {
  const organisationId = newId('org')
  const place = workplace()
  const message = async () => {
    place.add()
    await withLease(organisationId, place.work)
  }
  for (let round = 0; round < rounds(3, 10); round++) {
    await Promise.all(Array.from({ length: 8 }, message))
    expect(place.waiting()).toBe(0)
  }
  expect(place.most()).toBe(1)
})

test('a worker that fails leaves its turn to the next', async () => {
  const organisationId = newId('org')
  await expect(withLease(organisationId, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
  const place = workplace()
  place.add()
  await withLease(organisationId, place.work)
  expect(place.waiting()).toBe(0)
})

test('a worker that died keeps others out for ten seconds, and no longer', async () => {
  const organisationId = newId('org')
  void withLease(organisationId, () => new Promise<boolean>(() => undefined))
  const place = workplace()
  place.add()
  await expect
    .poll(async () => {
      await withLease(organisationId, place.work)
      const isKeptOut = place.waiting() === 1
      if (!isKeptOut) place.add()
      return isKeptOut
    })
    .toBe(true)
  shiftClock(10_001)
  await withLease(organisationId, place.work)
  expect(place.waiting()).toBe(0)
})

test('a worker that goes on for long keeps its turn', async () => {
  const organisationId = newId('org')
  const met: boolean[] = []
  await withLease(organisationId, async () => {
    let isMet = false
    await withLease(organisationId, async () => (isMet = true))
    met.push(isMet)
    shiftClock(6000)
    return met.length === 3
  })
  expect(met).toEqual([false, false, false])
})

test('work that takes too long is handed on, whoever asks for more meanwhile', async () => {
  const organisationId = newId('org')
  let runs = 0
  const work = async () => {
    runs++
    await withLease(organisationId, async () => true)
    shiftClock(4000)
    return true
  }
  await withLease(organisationId, work)
  expect(runs).toBe(4)
  const place = workplace()
  place.add()
  await withLease(organisationId, place.work)
  expect(place.waiting()).toBe(0)
})

test('organisations do not wait for each other', async () => {
  void withLease(newId('org'), () => new Promise<boolean>(() => undefined))
  const place = workplace()
  place.add()
  await withLease(newId('org'), place.work)
  expect(place.waiting()).toBe(0)
})
