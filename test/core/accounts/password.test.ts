import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { withFairQueue } from '@platform/core/accounts/hash-queue'
import { hashPassword, passwordMatches } from '@platform/core/accounts/password'
import { rounds } from '../../support/long.ts'
import { errorCodeOf } from '../../support/fixtures.ts'

const times = <Result>(count: number, work: () => Promise<Result>): Promise<Result>[] =>
  Array.from({ length: count }, work)
const nothing = 'no error'
const hashing = (who: string) => () => errorCodeOf(hashPassword('correct horse battery', who))

test('a password fits what was made of it, and nothing else does', async () => {
  const stored = await hashPassword('correct horse battery', 'me')
  expect(await passwordMatches('correct horse battery', stored, 'me')).toBe(true)
  expect(await passwordMatches('correct horse battery!', stored, 'me')).toBe(false)
  expect(await passwordMatches('correct horse battery', undefined, 'me')).toBe(false)
})

test('one that hashes without end keeps nobody else from it', async () => {
  const work = { isOver: false }
  const loop = async () => {
    while (!work.isOver) {
      await hashing('greedy')()
      await setImmediate()
    }
  }
  const loops = times(6, loop)
  for (let round = 0; round < rounds(3, 10); round++)
    expect(await Promise.all(times(2, hashing('modest')))).toEqual([nothing, nothing])
  work.isOver = true
  await Promise.all(loops)
})

test('two of one run and four wait; more are told to come again', async () => {
  const codes = await Promise.all(times(8, hashing('greedy')))
  expect(codes).toEqual([...Array(6).fill(nothing), 'rate_limited', 'rate_limited'])
})

test('four run and sixteen wait; more are told to come again, and afterwards all is free', async () => {
  const people = Array.from({ length: 10 }, (_, index) => `person ${index}`)
  const codes = await Promise.all(people.flatMap((who) => times(3, hashing(who))))
  expect(codes.filter((code) => code === nothing)).toHaveLength(20)
  expect(codes.filter((code) => code === 'rate_limited')).toHaveLength(10)
  expect(await hashing('person 9')()).toBe(nothing)
})

test('of those that wait, whoever has nothing running comes before whoever has', async () => {
  const started: string[] = []
  const noted = (who: string) => () => withFairQueue(who, async () => void started.push(who))
  await Promise.all([...times(5, noted('a')), ...times(5, noted('b')), noted('late')()])
  expect(started.indexOf('late')).toBe(4)
})
