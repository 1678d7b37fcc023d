import { ScanCommand } from '@aws-sdk/lib-dynamodb'
import { beforeAll, expect, test } from 'vitest'
import { config } from '@platform/core/config'
import { client } from '@platform/core/db/table'
import { signIn } from '@platform/core/accounts/session'
import * as SignIn from '@platform/core/identity-providers/sign-in'
import {
  advanceToNextMinute,
  createColleague,
  userRequest,
  type SignedInUser,
  setUpPlatform,
  errorCodeOf,
  signInUser,
  newOrigin,
  expectError,
} from '../../support/fixtures.ts'
import { beforeCommand } from '../../support/store-calls.ts'
import { measureUsage } from '../support/usage.ts'

/** Failed sign-ins: how many there may be, and what they tell. */

let platform: SignedInUser
beforeAll(async () => {
  platform = await setUpPlatform()
})

const limit = config.PLAT_LIMIT_SIGN_IN_USER_PER_MINUTE
const wrongFor = ({ username }: { username: string }) => ({ username, password: 'wrong password' })
const guess = (whom: { username: string }, origin = newOrigin()) => errorCodeOf(signIn(wrongFor(whom), origin))

test('of guesses at the same moment no more than the limit learn that they were wrong', async () => {
  const own = await createColleague(platform.caller, 'Viewer')
  advanceToNextMinute()
  const codes = await Promise.all(Array.from({ length: 12 }, () => guess(own)))
  expect(codes.filter((code) => code === 'invalid_credentials')).toHaveLength(limit)
  expect(codes.filter((code) => code === 'rate_limited')).toHaveLength(12 - limit)
})

test('the right guess among many at the same moment is refused once the others are too many', async () => {
  const own = await createColleague(platform.caller, 'Viewer')
  advanceToNextMinute()
  const areGuessed = beforeCommand(
    /^BatchGet/,
    async () => {
      for (let count = 0; count < limit; count++) await guess(own)
    },
    2,
  )
  await expectError(signIn(own.credentials, newOrigin()), 'rate_limited')
  expect(areGuessed()).toBe(true)
})

test('sign-ins that are right are not counted, however many', async () => {
  const own = await createColleague(platform.caller, 'Viewer')
  const origin = newOrigin()
  for (let count = 0; count < 25; count++) await signIn(own.credentials, origin)
})

test('failures are counted for an IPv6 network, not for each of its addresses', async () => {
  const addressLimit = config.PLAT_LIMIT_SIGN_IN_ADDRESS_PER_MINUTE
  advanceToNextMinute()
  for (let count = 0; count < addressLimit; count++) {
    const origin = { address: `2001:db8:0:1::${(count + 1).toString(16)}` }
    expect(await guess({ username: `nobody-${count}` }, origin)).toBe('invalid_credentials')
  }
  expect(await guess({ username: 'nobody' }, { address: '2001:db8:0:1:ffff::1' })).toBe('rate_limited')
  expect(await guess({ username: 'nobody' }, { address: '2001:db8:0:2::1' })).toBe('invalid_credentials')
})

test('a failure costs the same calls, whether anybody has the name or not', async () => {
  const own = await createColleague(platform.caller, 'Viewer')
  // The local way in, and the one that knows directories.
  for (const way of [signIn, SignIn.signIn]) {
    const guessBy = (whom: { username: string }) => measureUsage(() => errorCodeOf(way(wrongFor(whom), newOrigin())))
    const [known, unknown] = [await guessBy(own), await guessBy(userRequest())]
    expect(known.usage.calls.toSorted()).toEqual(unknown.usage.calls.toSorted())
    expect(known.usage.rounds).toBe(unknown.usage.rounds)
  }
})

test('a sign-in costs three calls', async () => {
  const own = await createColleague(platform.caller, 'Viewer')
  const { usage } = await measureUsage(() => signInUser(own.username))
  expect(usage.calls.filter((action) => action !== 'SendMessage')).toHaveLength(3)
})

test('a password that is typed as the name stands nowhere in the store', async () => {
  const typed = 'my-own-long-password'
  await expectError(signIn({ username: typed, password: 'whatever comes' }, newOrigin()), 'invalid_credentials')
  const { Items, LastEvaluatedKey } = await client.send(new ScanCommand({ TableName: config.PLAT_TABLE }))
  expect(LastEvaluatedKey).toBe(undefined)
  expect(JSON.stringify(Items)).toContain('FAILED-SIGN-INS#user:')
  expect(JSON.stringify(Items).toLowerCase()).not.toContain(typed)
})
