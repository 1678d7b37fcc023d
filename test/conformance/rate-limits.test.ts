import { assert, expect } from 'vitest'
import { test } from './support/test.ts'
import { type Answer, expectStatus } from './support/answer.ts'
import { batchPath, jobFor } from './support/batch.ts'

/** More failures than any limit per minute. */
const manyFailures = 200

const standingOf = ({ headers }: Answer): number[] =>
  ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`ratelimit-${name}`) ?? Number.NaN))

test('returns the rate limit state with every response to a signed-in caller', async ({ platform }) => {
  const { client } = await platform.newPerson('Viewer')
  for (const [answer, status] of [
    [await client.get('/api/v1/clusters'), 200],
    [await client.get('/api/v1/clusters/nothing'), 404],
    [await client.get('/api/v1/clusters?page=0'), 400],
    [await client.patch('/api/v1/notifications', {}), 204],
  ] as const) {
    expectStatus(answer, status)
    const [limit = 0, remaining = -1, reset = -1] = standingOf(answer)
    expect(limit, `${answer.path}: ${standingOf(answer).join()}`).toBeGreaterThan(0)
    expect(remaining, `${answer.path}: ${standingOf(answer).join()}`).toBeGreaterThanOrEqual(0)
    expect(remaining, `${answer.path}: ${standingOf(answer).join()}`).toBeLessThan(limit)
    expect(reset, `${answer.path}: ${standingOf(answer).join()}`).toBeGreaterThanOrEqual(0)
  }
})

test('counts each caller separately', async ({ platform }) => {
  const [busy, idle] = [await platform.newPerson('Viewer'), await platform.newPerson('Viewer')]
  await Promise.all(Array.from({ length: 20 }, () => busy.client.get('/api/v1/auth/me')))
  const [limit = 0, remaining] = standingOf(await idle.client.get('/api/v1/auth/me'))
  expect(remaining).toBe(limit - 1)
})

test('limits failed sign-ins per user, even with the right password afterwards', async ({ platform }) => {
  const { username, password } = await platform.newPerson('Viewer')
  const attempt = (secret: string) =>
    platform.anonymous.attempt('POST', '/api/v1/auth/login', { json: { username, password: secret } })
  let refusal: Answer | undefined
  for (let failures = 0; refusal === undefined && failures < manyFailures; failures++) {
    const wrong = await attempt(`${password}.`)
    if (wrong.status !== 429) expectStatus(wrong, 401, 'invalid_credentials')
    // A platform that is busy with password checks also returns 429.
    const right = wrong.status === 429 ? await attempt(password) : undefined
    if (right?.status === 429) refusal = right
  }
  assert(refusal !== undefined, `${manyFailures} failures in a row were not limited`)
  expectStatus(refusal, 429, 'rate_limited')
  const waitSeconds = Number(refusal.headers.get('retry-after'))
  expect(waitSeconds, `${waitSeconds}`).toBeGreaterThanOrEqual(1)
  expect(waitSeconds, `${waitSeconds}`).toBeLessThanOrEqual(60)
  await platform.signIn()
})

test('rejects a body above 4 MiB without side effects', async ({ platform, admin }) => {
  const { id: clusterId } = await platform.newCluster()
  const jobs = Array.from({ length: 17 }, () => jobFor(clusterId, '#'.padEnd(260_000, 'x')))
  expect(JSON.stringify({ jobs }).length).toBeGreaterThan(4 * 1024 * 1024)
  expectStatus(await admin.post(batchPath, { jobs }), 413, 'payload_too_large')
  expectStatus(await admin.delete(`/api/v1/clusters/${clusterId}`), 204)
})
