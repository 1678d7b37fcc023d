import { callerOf } from '@platform/modules'
import { expect, test } from 'vitest'
import { type Instance, startedInstance } from '../support/sdk-instance.ts'
import { userToken } from '../support/user-token.ts'

const instance = (): Promise<Instance> =>
  startedInstance({ routes: (app) => void app.get('/api/sample', (c) => c.json(callerOf(c))) })

const asked = async (token: string | undefined) => {
  const headers = token === undefined ? {} : { 'x-platform-user': token }
  return (await instance()).ask('GET', '/api/sample', { headers })
}

test('a route learns who asks', async () => {
  const response = await asked(userToken({ aud: 'sample' }))
  expect([response.status, await response.json()]).toEqual([
    200,
    { userId: 'user_ada', organisationId: 'org_acme', permissions: ['clusters:read'] },
  ])
})

test('a request that comes from no user has no caller', async () => {
  expect((await asked(undefined)).status).toBe(401)
})

const seconds = (fromNow: number): number => Math.floor(Date.now() / 1000) + fromNow

test.for([
  ['is for another module', userToken({ aud: 'other' })],
  ['is for several modules', userToken({ aud: ['sample'] })],
  ['is for nobody', userToken({})],
  ['has expired', userToken({ aud: 'sample', exp: seconds(-1) })],
  ['expires this very second', userToken({ aud: 'sample', exp: seconds(0) })],
  ['never expires', userToken({ aud: 'sample', exp: undefined })],
  ['expires in words', userToken({ aud: 'sample', exp: 'never' })],
  ['names no user', userToken({ aud: 'sample', sub: undefined })],
  ['names no organisation', userToken({ aud: 'sample', org: null })],
  ['names permissions that are none', userToken({ aud: 'sample', permissions: [1] })],
  ['has no payload', 'x'],
  ['has a payload that is not JSON', 'x.eCJ5.z'],
  ['has a payload that is null', `x.${Buffer.from('null').toString('base64url')}.z`],
  ['is empty', ''],
] as const)('a token about a user that %s is refused', async ([, token]) => {
  const response = await asked(token)
  expect([response.status, await response.json()]).toEqual([403, expect.objectContaining({ error: 'forbidden' })])
})
