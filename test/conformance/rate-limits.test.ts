import { assert, expect } from 'vitest'
import { type ApiResponse, expectStatus } from './support/answer.ts'
import { test } from './support/test.ts'

/** More failures than any limit per minute. */
const manyFailures = 200

const standingOf = ({ headers }: ApiResponse): number[] =>
  ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`ratelimit-${name}`) ?? Number.NaN))

test('returns the rate limit state with every response to a signed-in caller', async ({ platform }) => {
  const { client } = await platform.newUser('Viewer')
  for (const [response, status] of [
    [await client.get('/api/v1/clusters'), 200],
    [await client.get('/api/v1/clusters/nothing'), 404],
    [await client.get('/api/v1/clusters?page=0'), 400],
    [await client.patch('/api/v1/notifications', {}), 204],
  ] as const) {
    expectStatus(response, status)
    const [limit = 0, remaining = -1, reset = -1] = standingOf(response)
    expect(limit, `${response.path}: ${standingOf(response).join()}`).toBeGreaterThan(0)
    expect(remaining, `${response.path}: ${standingOf(response).join()}`).toBeGreaterThanOrEqual(0)
    expect(remaining, `${response.path}: ${standingOf(response).join()}`).toBeLessThan(limit)
    expect(reset, `${response.path}: ${standingOf(response).join()}`).toBeGreaterThanOrEqual(0)
  }
})

test('rejects the correct password after too many failed sign-ins of a user', async ({ platform }) => {
  const { username, password } = await platform.newUser('Viewer')
  const attempt = (secret: string) =>
    platform.anonymous.attempt('POST', '/api/v1/auth/login', { json: { username, password: secret } })
  let refusal: ApiResponse | undefined
  for (let failures = 0; refusal === undefined && failures < manyFailures; failures++) {
    const failure = await attempt(`${password}.`)
    if (failure.status !== 429) expectStatus(failure, 401, 'invalid_credentials')
    // A platform that is busy with password checks also returns 429.
    const right = failure.status === 429 ? await attempt(password) : undefined
    if (right?.status === 429) refusal = right
  }
  assert(refusal !== undefined, `${manyFailures} failures in a row were not limited`)
  expectStatus(refusal, 429, 'rate_limited')
  const waitSeconds = Number(refusal.headers.get('retry-after'))
  expect(waitSeconds, `${waitSeconds}`).toBeGreaterThanOrEqual(1)
  expect(waitSeconds, `${waitSeconds}`).toBeLessThanOrEqual(60)
  await platform.signIn()
})
