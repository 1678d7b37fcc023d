import { callerOf } from '@platform/modules'
import { expect, test } from 'vitest'
import { type Instance, startedInstance } from '../support/sdk-instance.ts'
import { userToken } from '../support/user-token.ts'

const instance = (): Promise<Instance> =>
  startedInstance({ routes: (app) => void app.get('/api/sample', (c) => c.json(callerOf(c))) })

const request = async (token: string | undefined) => {
  const headers = token === undefined ? {} : { 'x-platform-user': token }
  return (await instance()).send('GET', '/api/sample', { headers })
}

test('provides the caller to routes', async () => {
  const response = await request(userToken({ aud: 'sample' }))
  expect([response.status, await response.json()]).toEqual([
    200,
    { userId: 'user_ada', organisationId: 'org_acme', permissions: ['clusters:read'] },
  ])
})

test('rejects callerOf for a request without a user', async () => {
  expect((await request(undefined)).status).toBe(401)
})

const seconds = (fromNow: number): number => Math.floor(Date.now() / 1000) + fromNow

test.for([
  ['is for another module', userToken({ aud: 'other' })],
  ['is for several modules', userToken({ aud: ['sample'] })],
  ['has no audience', userToken({})],
  ['has expired', userToken({ aud: 'sample', exp: seconds(-1) })],
  ['expires now', userToken({ aud: 'sample', exp: seconds(0) })],
  ['never expires', userToken({ aud: 'sample', exp: undefined })],
  ['has a text as its expiry', userToken({ aud: 'sample', exp: 'never' })],
  ['has no user', userToken({ aud: 'sample', sub: undefined })],
  ['has no organisation', userToken({ aud: 'sample', org: null })],
  ['has invalid permissions', userToken({ aud: 'sample', permissions: [1] })],
  ['has no payload', 'x'],
  ['has a payload that is not JSON', 'x.eCJ5.z'],
  ['has null as its payload', `x.${Buffer.from('null').toString('base64url')}.z`],
  ['is empty', ''],
] as const)('rejects a user token that %s', async ([, token]) => {
  const response = await request(token)
  expect([response.status, await response.json()]).toEqual([403, expect.objectContaining({ error: 'forbidden' })])
})
