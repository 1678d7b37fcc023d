import { setImmediate } from 'node:timers/promises'
import { withFairQueue } from '@platform/core/accounts/hash-queue'
import { hashPassword, passwordMatches } from '@platform/core/accounts/password'
import { checkNewPassword } from '@platform/core/accounts/password-rules'
import { expect, test } from 'vitest'
import { errorCodeOf } from '../../support/fixtures.ts'
import { rounds } from '../../support/long.ts'

const repeat = <Result>(count: number, work: () => Promise<Result>): Promise<Result>[] =>
  Array.from({ length: count }, work)
const success = 'no error'
const hashFor = (queueKey: string) => () => errorCodeOf(hashPassword('correct horse battery', queueKey))

test('only the hashed password matches, and its hash uses 19 MiB and two passes', async () => {
  const storedHash = await hashPassword('correct horse battery', 'user')
  expect(storedHash).toMatch(/^argon2id\$19456\$2\$1\$/)
  expect(await passwordMatches('correct horse battery', storedHash, 'user')).toBe(true)
  expect(await passwordMatches('correct horse battery!', storedHash, 'user')).toBe(false)
  expect(await passwordMatches('correct horse battery', undefined, 'user')).toBe(false)
})

test.each([
  ['password', 'common'],
  ['Password123', 'common'],
  ['1234 5678', 'common'],
  ['ｐａｓｓｗｏｒｄ', 'common'],
  ['        ', 'spaces'],
  ['aAaAaAaA', 'one character'],
  ['\u200b\u200b\u200b\u200b\u200b\u200b\u200b\u200b', 'spaces'],
  ['ADA.Lovelace', 'user name'],
  ['acmeplatform', 'name of the platform'],
  ['correct horse battery', undefined],
  ['acme platform 2', undefined],
])('the new password %j is rejected as %s', async (password, reason) => {
  const names = { username: 'ada.lovelace', platformName: 'Acme Platform' }
  const failure = await checkNewPassword({ field: 'password', password, ...names }).catch((error: unknown) => error)
  const details = [
    { in: 'body', path: '/password', code: 'weak_password', message: expect.stringContaining(reason ?? '') },
  ]
  expect(failure).toEqual(reason && expect.objectContaining({ code: 'validation_failed', extra: { details } }))
})

test('continuous password hashing for one key does not block other keys', async () => {
  const state = { isDone: false }
  const hashContinuously = async () => {
    while (!state.isDone) {
      await hashFor('greedy')()
      await setImmediate()
    }
  }
  const loops = repeat(6, hashContinuously)
  for (let round = 0; round < rounds(2, 10); round++) {
    expect(await Promise.all(repeat(2, hashFor('modest')))).toEqual([success, success])
  }
  state.isDone = true
  await Promise.all(loops)
})

test('two hashes of a key run and four wait; more are rejected', async () => {
  const codes = await Promise.all(repeat(8, hashFor('greedy')))
  expect(codes).toEqual([...Array(6).fill(success), 'rate_limited', 'rate_limited'])
})

test('four hashes run and sixteen wait; more are rejected until slots are free', async () => {
  const queueKeys = Array.from({ length: 10 }, (_, index) => `user ${index}`)
  const codes = await Promise.all(queueKeys.flatMap((queueKey) => repeat(3, hashFor(queueKey))))
  expect(codes.filter((code) => code === success)).toHaveLength(20)
  expect(codes.filter((code) => code === 'rate_limited')).toHaveLength(10)
  expect(await hashFor('user 9')()).toBe(success)
})

test('a waiting key without running hashes starts before keys with running ones', async () => {
  const startedHashes: string[] = []
  const record = (queueKey: string) => () => withFairQueue(queueKey, async () => void startedHashes.push(queueKey))
  await Promise.all([...repeat(5, record('a')), ...repeat(5, record('b')), record('late')()])
  expect(startedHashes.indexOf('late')).toBe(4)
})
